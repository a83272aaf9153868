"""Uniform integers in [0, 2^62): from the operating system for a release, from a seed for an experiment, from a secret for a repeatable draw.

A repeatable draw is a keyed function of a client's data: BLAKE2b [RFC 7693], keyed, of the client's canonical input. This module also has the
law in whole numbers that is hashed for it, and the files of secrets.

    run key  =  BLAKE2b-512(key = secret,  person = "discreet run v2",   agreement id | round | question)
    words    =  BLAKE2b-512(key = run key, person = "discreet draw v2",  message(client, outcomes, counts))

The first word, less its two lowest bits, is the uniform 62-bit integer of `discreet.release._lattice`. The second orders samples that are
published without their clients; the third places a point within a cell; the last four add up to the digest of the whole input
(`InputDigest`). While the secret is secret, words of different messages or under different run keys are indistinguishable from independent
uniform ones. So the same question to the same client with the same data, under the same agreement and in the same round, has the same answer
for every retry of a task, and nothing new is released. Another question (another column of the same domain), another round or another
agreement is an independent draw.

**Limit.** No rule without a memory can answer one question twice in one round on data that may have changed. Let S(D) be the sample from data
D under a fixed key, with the distribution Q(D) over keys. If the answer is repeatable, S(D) = S(D) for certain. But if D and D' have
different distributions, P(S(D) != S(D')) is at least the total variation distance of Q(D) and Q(D'), *for every joint distribution of the
two*, and that is not zero. So two answers that differ prove a change: the odds shift by an infinite factor, not by e^(2 epsilon). Hashing the
data makes it nearly certain that a change shows, since the two draws are independent and agree only by chance. Leaving the data out makes it
rarer, and also reveals where the change was. Hence a round is released once. The holder of the secret keeps the digest of each round's input
beside it, and rejects a round whose input has changed. New data are a new round: a new run key and fresh randomness, even if nothing has
changed. Two rounds of one client are then 2 epsilon-LDP together, for any two histories of its data.

The message is a list of 64-bit words, little-endian, and can be decoded uniquely, so that two clients or laws never share one:

    header   kind of client (1 integer, 2 text) + 256 * form (0 narrow, 1 wide) + 65536 * bytes of text
    client   the integer, two's complement; or the text in UTF-8, padded with zeros to whole words. A text that is the canonical
             spelling of a 64-bit integer ("7", "-12"; not "07", "+7", "-0") is that integer, since formats differ in this
    law      the distinct outcomes in increasing order with the numbers made of their counts or weights, below:
             narrow, one word 2^32 outcome + number, where all outcomes and numbers are below 2^32; else wide, two words

**The law in whole numbers.** Equal laws have equal whole numbers. *Counts* (and records, which count once each) are added up in integers and
divided by their greatest common divisor. So proportional counts are one law, and different laws are different numbers.

*Weights* come from floating-point sums, whose last bits depend on the order of the rows and on their partitions. They are added up without
rounding, to W_x for an outcome and T for the client, and then put on a public grid:

    an outcome with W_x < 2^-44 T counts as zero (the residue of a cancellation is not an outcome); m are left
    n_x = floor(2^s W_x / T + 1/2),   s = 20 + ceil(log2 m),   divided by the greatest common divisor of the n_x

and n_x / sum(n) is the law of the client. It is a function of the shares W_x / T alone. Order, scale and the way a weight is split over rows
do not matter, except for rounding errors made before the weights came here.

* *There is a law*: the largest W_x is at least (1 - 2^-12) T/m (there are less than 2^32 outcomes, and those that count as zero are less than
2^-12 of T). So its n_x is at least 2^20 (1 - 2^-12) - 1/2 > 0, as soon as one weight is positive.
* *The grid costs little*: with q_x = 2^s W_x / T and A = sum |n_x - q_x|, the total variation distance to W/T is at most A / 2^s, since
|sum(n) - 2^s| <= A too. Rounding adds at most m/2 to A. Hence the distance is at most 2^-21, plus 2^-44 for each outcome that counts as zero:
below 2^-20 for every client with fewer than eight million of those.
* *How often noise still crosses a line.* Let each W_x change by a factor within 1 +- d. Then q_x moves by at most about 2 d q_x, and crosses
one of the lines k + 1/2 with that probability if it lies anywhere between them. For the client as a whole, the probability is at most 2^(s+1)
d. For a change in the last bit of every weight, d = 2^-52, that is 2^(s-51) < m 2^-30: one client in a hundred million, for ten outcomes
each.
* *Weights that are multiples of a common unit*, such as cents, N units in all, do not cross at all if N < 2^(50-s) (67 million, up to 16
outcomes), unless N has the factor 2^(s+1). The distance of q_x = 2^s a/N from a line is a multiple of 1/(2 N), and not 0 unless the reduced
denominator of a/N is 2^(s+1).

Privacy does not depend on the grid: the box holds for every law (`discreet.release._lattice`).

**Uniform integers below a bound**, exactly. Words of 62 bits at or above the last whole multiple of the bound are drawn anew; the remainder
of any other word is uniform. A word is kept with probability more than one half, so a draw takes fewer than two words on average. Words come
from the operating system, from a seed, or from a secret and a client's data:

    words i*8 .. i*8+7  =  BLAKE2b-512(key = run key, person = "discreet blocks1", i as 8 bytes, little-endian | message)

with the run key and the message above. Each word loses its two lowest bits.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import shlex
import struct
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet._base import OldName
from discreet._base.files import atomic_write, read_private_file
from discreet.errors import DiscreetError, NotPrivateWarning, check_count, check_path, warn_caller

BITS = 62
_TOGETHER = 1 << 15  # most integers in one read, so that they stay in cache
_WORTH_A_THREAD = 1 << 12
_MOST_THREADS = 16


class Randomness(Protocol):
    """A source of independent uniform integers in [0, 2^62)."""

    def integers(self, count: int) -> NDArray[np.int64]: ...


class IntegerFiller(Protocol):
    """A source that writes its integers in place, part by part."""

    def fill_by_parts(self, found: NDArray[np.int64]) -> Iterator[int]:
        """Write an integer to every place, from the first on, and yield the number of filled places from time to time."""


class SystemEntropy:
    """The operating system's generator, from which private releases draw."""

    def integers(self, count: int) -> NDArray[np.int64]:
        integers = np.empty(count, dtype=np.int64)
        for _ in self.fill_by_parts(integers):
            pass
        return integers

    def fill_by_parts(self, found: NDArray[np.int64]) -> Iterator[int]:
        """Write an integer to every place, from the first on, and yield the number of filled places from time to time."""
        count, words = len(found), found.view(np.uint64)
        if count <= _WORTH_A_THREAD:
            if count:
                _fill_with_entropy(words)
            yield count
            return
        threads = min(_MOST_THREADS, os.cpu_count() or 1)
        step = min(_TOGETHER, max(_WORTH_A_THREAD, -(-count // threads)))
        parts = [words[start : start + step] for start in range(0, count, step)]
        done = 0
        # several threads read, since one alone would be the bottleneck
        for part in _entropy_thread_pool(threads).map(_fill_with_entropy, parts):
            done += part
            yield done

    filled = OldName("fill_by_parts")


def entropy_bytes(count: int) -> bytes:
    """That many bytes of the operating system's generator, for keys and words of a draw elsewhere."""
    return os.urandom(count)


def _fill_with_entropy(words: NDArray[np.uint64]) -> int:
    np.right_shift(np.frombuffer(os.urandom(words.nbytes), dtype=np.uint64), np.uint64(64 - BITS), out=words)
    return len(words)


@lru_cache(maxsize=1)
def _entropy_thread_pool(threads: int) -> ThreadPoolExecutor:
    """A permanent thread pool: starting threads takes as long as reading a million integers."""
    return ThreadPoolExecutor(threads, thread_name_prefix="discreet-entropy")


if hasattr(os, "register_at_fork"):  # a fork copies no threads: a child starts its own
    os.register_at_fork(after_in_child=_entropy_thread_pool.cache_clear)


class FixedIntegers:
    """Given integers as a source, for checks of the draw. NOT private."""

    def __init__(self, uniform: NDArray[np.int64]) -> None:
        self._uniform = uniform

    def fill_by_parts(self, found: NDArray[np.int64]) -> Iterator[int]:
        """Write the integers to their places."""
        found[:] = self._uniform
        yield len(found)


class _SeededRandomness:
    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def integers(self, count: int) -> NDArray[np.int64]:
        return self._rng.integers(0, 1 << BITS, size=count, dtype=np.int64)


def generator(rng: np.random.Generator | None) -> np.random.Generator:
    """The generator given, or a fresh one: for what does not depend on a client.

    Args:
        rng: a numpy Generator, or None.

    Returns:
        A numpy Generator.

    Raises:
        DiscreetError: for anything else.
    """
    if rng is None:
        return np.random.default_rng()
    if not isinstance(rng, np.random.Generator):
        raise DiscreetError(
            f"rng = {rng!r} is not a numpy Generator; pass numpy.random.default_rng(seed), or leave it out"
        )
    return rng


def seeded_randomness(rng: np.random.Generator) -> Randomness:
    """Reproducible randomness for experiments; warns that everybody who knows the seed can undo the privacy.

    Args:
        rng: a numpy Generator.

    Returns:
        A source of uniform integers.

    Raises:
        DiscreetError: for anything else.
    """
    rng = generator(rng)
    warn_caller(
        "rng= makes the sample reproducible: it is NOT private; leave it out to draw from the operating system",
        NotPrivateWarning,
    )
    return _SeededRandomness(rng)


def entropy_or_seeded_randomness(rng: np.random.Generator | None) -> Randomness:
    """The operating system's entropy; or for experiments reproducible randomness from a generator, which warns so."""
    return SystemEntropy() if rng is None else seeded_randomness(rng)


SHARE_BITS = 20  # the grid is 2^-20 of the total, and finer by the number of outcomes
NOTHING_BITS = 44  # a share below 2^-44 counts as zero

_SMALLEST_BITS = 1074  # every float is a multiple of 2^-1074


def integer_law_of_counts(outcomes: Iterable[int], counts: Iterable[int]) -> dict[int, int]:
    """The law of records with whole-number counts, in any order: the numbers by outcome, in increasing order of outcome."""
    return _divide_by_gcd(_sums_by_outcome(outcomes, counts))


def integer_law_of_weighted_records(outcomes: Iterable[int], weights: Iterable[float]) -> dict[int, int]:
    """The same for records with weights. (`discreet.release._canonical_records` computes both for millions of clients.)"""
    sums = _sums_by_outcome(outcomes, [_weight_in_smallest_units(weight) for weight in weights])
    total = sum(sums.values())
    kept_sums = {x: amount for x, amount in sums.items() if amount << NOTHING_BITS >= total}
    bits = SHARE_BITS + (len(kept_sums) - 1).bit_length() if kept_sums else 0
    return _divide_by_gcd({x: ((amount << (bits + 1)) + total) // (2 * total) for x, amount in kept_sums.items()})


def _sums_by_outcome(outcomes: Iterable[int], amounts: Iterable[int]) -> dict[int, int]:
    sums: dict[int, int] = {}
    for x, amount in zip(outcomes, amounts, strict=True):
        if amount:
            sums[x] = sums.get(x, 0) + amount
    return dict(sorted(sums.items()))


def _divide_by_gcd(numbers: dict[int, int]) -> dict[int, int]:
    common = math.gcd(*numbers.values())
    return {x: number // common for x, number in numbers.items() if number}


def _weight_in_smallest_units(weight: float) -> int:
    """A float in units of 2^-1074."""
    numerator, denominator = float(weight).as_integer_ratio()
    return (numerator << _SMALLEST_BITS) // denominator


INTEGER_CLIENT, TEXT_CLIENT = 1, 2
NARROW_FORM, WIDE_FORM = 0, 1
WORDS = (
    8  # of each client: the draw, the order, the place in a cell, one to spare, and four for the digest of the input
)
DIGEST_WORDS = 4  # the last ones

_RUN_PERSON = b"discreet run v2"
DRAW_PERSON = b"discreet draw v2"
_DIGEST_PERSON = b"discreet data v2"
_RECORDS, _COUNT, _WEIGHT = 0, 1, 2  # the kind of a question's second column
_ID_BYTES = 32
_WHOLE = re.compile("0|-?[1-9][0-9]{0,18}")  # the canonical spelling of a 64-bit integer
_SECRET_BYTES = 32
_SECRET_LINE = re.compile(rb"discreet-secret-1 ([0-9a-f]{64})\n?\Z")
_THE_SAME = (
    "give the one of earlier releases, since another one releases every client anew (the first time make one with: "
    "discreet secret FILE)"
)
_LARGEST_FILE = 1024  # a longer file is not a secret, and is not read


@dataclass(frozen=True)
class RunKey:
    """The key of one question in one round of one agreement; an engine's workers get it instead of the secret."""

    value: bytes = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Question:
    """The question to each client: the column of its values, and optionally that of their counts or weights."""

    value: str
    count: str | None = None
    weight: str | None = None

    @property
    def encoding(self) -> bytes:
        """A uniquely decodable encoding: the length of the first name, that name, a byte for the kind of the second column, its name."""
        value = _utf8_bytes(self.value)
        kind, name = (_COUNT, self.count) if self.count is not None else (_WEIGHT, self.weight)
        second = bytes([_RECORDS]) if name is None else bytes([kind]) + _utf8_bytes(name)
        return struct.pack("<Q", len(value)) + value + second


@dataclass(frozen=True)
class InputDigest:
    """A keyed digest of the data of a set of clients: the sums, modulo 2^64, of the last four words of each.

    Digests of parts add up to the digest of the whole, for every order and partition. Words of different messages are independent and
    uniform, and each client comes once. So two inputs, chosen without the key, in which any client or law differs have the same digest with
    probability 2^-256: one such word occurs in one of the sums alone.
    """

    words: tuple[int, int, int, int] = (0, 0, 0, 0)

    @classmethod
    def from_sums(cls, sums: NDArray[np.uint64]) -> InputDigest:
        """The digest with these sums; of nothing, if there are none."""
        a, b, c, d = sums.tolist() or (0, 0, 0, 0)
        return cls((a, b, c, d))

    def __add__(self, other: InputDigest) -> InputDigest:
        a, b, c, d = ((left + right) % (1 << 64) for left, right in zip(self.words, other.words, strict=True))
        return InputDigest((a, b, c, d))

    def keyed_hash(self, key: RunKey) -> bytes:
        """32 bytes that identify the sums, and reveal nothing about them without the key."""
        content = struct.pack(f"<{DIGEST_WORDS}Q", *self.words)
        return hashlib.blake2b(content, key=key.value, person=_DIGEST_PERSON, digest_size=32).digest()


@dataclass(frozen=True)
class Secret:
    """32 random bytes. Everybody who knows them and a client's identity can undo its privacy; it never prints itself.

    Args:
        value: the bytes.
        state: where the rounds that are released under it are noted.

    Raises:
        DiscreetError: for anything but 32 bytes, and for what is not a path.
    """

    value: bytes = field(repr=False)
    state: Path | None = field(default=None, compare=False, repr=False)  # the record of the rounds released under it

    def __post_init__(self) -> None:
        if self.state is not None:
            object.__setattr__(self, "state", check_path("state", self.state))
        # a shorter key can be guessed, and no key at all is one that everybody knows
        if not isinstance(self.value, bytes) or len(self.value) != _SECRET_BYTES:
            content = f"{len(self.value)} bytes" if isinstance(self.value, bytes) else f"a {type(self.value).__name__}"
            raise DiscreetError(
                f"secret holds {content}, not {_SECRET_BYTES} random bytes; make one with: discreet secret FILE, or fresh_secret()"
            )

    def run_key(self, agreement_id: str, round_number: int, question: Question) -> RunKey:
        """The key for one question in one round of the agreement with this id (64 hexadecimal digits)."""
        check_count("round", round_number)
        # a fixed length keeps the encoding unique
        if not re.fullmatch(f"[0-9a-fA-F]{{{2 * _ID_BYTES}}}", agreement_id):
            raise DiscreetError(f"agreement id {agreement_id!r} is not one of {2 * _ID_BYTES} hexadecimal digits")
        message = bytes.fromhex(agreement_id) + struct.pack("<Q", round_number) + question.encoding
        return RunKey(hashlib.blake2b(message, key=self.value, person=_RUN_PERSON).digest())


def fresh_secret() -> Secret:
    """A secret from the operating system's entropy."""
    return Secret(os.urandom(_SECRET_BYTES))


def write_secret(path: str | Path) -> None:
    """Write a fresh secret to a new file that its owner alone may read (0600). An existing file is never replaced.

    Args:
        path: of the new file.

    Raises:
        DiscreetError: for a file that exists or cannot be written, and where the rounds of an earlier secret of that name are noted.
    """
    fix = "replacing a secret would release every client anew; choose another name"
    with atomic_write(path, what="secret file", private=True, fix=fix) as file:
        record = rounds_record_path(path)
        if os.path.lexists(record):
            raise DiscreetError(
                f"{record} notes the rounds of a secret that was called {path}; restore that secret (a new one releases every client anew), "
                "or choose another name"
            )
        file.write(secret_file_content(fresh_secret().value))


def secret_file_content(secret: bytes) -> bytes:
    """The content of a secret's file."""
    return b"discreet-secret-1 " + secret.hex().encode() + b"\n"


def read_secret(path: str | Path, *, state: str | Path | None = None) -> Secret:
    """Read the secret in a file. It is an error if others than its owner may read or write the file, or if it has a second hard link.

    Two hard links of one file would each have a record of their own, and one round could be released twice.

    Args:
        path: of a file that `discreet secret` or `write_secret` made.
        state: where the rounds that are released under it are noted, by default beside the file itself (after symbolic links).

    Returns:
        The secret.

    Raises:
        DiscreetError: for a file that cannot be read, holds no secret, or is not its owner's alone.
    """
    content = read_private_file(
        path,
        what="secret file",
        most=_LARGEST_FILE,
        fix=_THE_SAME,
        after=" (and make a new one if they may have)",
        check=lambda status: _refuse_second_hard_link(path, status),
    )
    return Secret(
        parse_secret(content, path), rounds_record_path(path) if state is None else check_path("state", state)
    )


def parse_secret(content: bytes, path: str | Path) -> bytes:
    """The secret in a file's content."""
    match = _SECRET_LINE.match(content)
    if match is None:
        raise DiscreetError(f"{path} does not hold a secret; {_THE_SAME}")
    return bytes.fromhex(match[1].decode())


def _refuse_second_hard_link(path: str | Path, status: os.stat_result) -> None:
    if status.st_nlink > 1:
        folder = shlex.quote(os.path.dirname(os.path.realpath(path)))
        raise DiscreetError(
            f"secret file {path} has {status.st_nlink} names (hard links), each with its own record of rounds; keep the one beside "
            f"which NAME.rounds lies and remove the others (find {folder} -samefile {shlex.quote(str(path))}, then in higher folders). "
            "If two have such a record, keep neither, and make a new secret: discreet secret FILE (it releases every client anew: what was "
            "spent stays spent)"
        )


def as_secret(secret: Secret | str | Path | None) -> Secret | None:
    """The secret itself, or the one in the file of that name; None for None."""
    if secret is None or isinstance(secret, Secret):
        return secret
    if not isinstance(secret, (str, os.PathLike)):  # the value is not shown: it may be the secret itself
        raise DiscreetError(
            f"secret is a {type(secret).__name__}; pass the path of a file made by: discreet secret FILE, or read_secret(path)"
        )
    return read_secret(secret)


def rounds_record_path(path: str | Path) -> Path:
    """The default path of the record of rounds of a secret's file."""
    return Path(f"{os.path.realpath(path)}.rounds")


def _utf8_bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")  # invalid Unicode is a name too, and a different one


def integer_or_text_name(name: str) -> int | str:
    """The 64-bit integer with that canonical spelling; any other name unchanged."""
    if _WHOLE.fullmatch(name) and -(1 << 63) <= int(name) < 1 << 63:
        return int(name)
    return name


def client_message(client: int | str, outcomes: Sequence[int], counts: Sequence[int]) -> bytes:
    """The canonical input of a client: its identity, and its law in whole numbers (`integer_law_of_weighted_records` for weights)."""
    law = integer_law_of_counts(outcomes, counts)
    narrow = all(x < 1 << 32 and number < 1 << 32 for x, number in law.items())
    form = NARROW_FORM if narrow else WIDE_FORM
    client = integer_or_text_name(client) if isinstance(client, str) else client
    if isinstance(client, str):
        try:
            text = client.encode()
        except UnicodeEncodeError:
            raise DiscreetError("client is not valid Unicode; pass a name that UTF-8 can spell") from None
        head = struct.pack("<Q", TEXT_CLIENT + 256 * form + 65536 * len(text)) + text + bytes(-len(text) % 8)
    else:
        integer = check_count(
            "client", client, least=-(1 << 63), most=(1 << 63) - 1, fix="pass a text or a 64-bit integer"
        )
        head = struct.pack("<Qq", INTEGER_CLIENT + 256 * form, integer)
    if narrow:
        return head + b"".join(struct.pack("<Q", (x << 32) + number) for x, number in law.items())
    return head + b"".join(struct.pack("<QQ", x, number) for x, number in law.items())


def pseudo_random_words_of_client(
    key: RunKey, client: int | str, outcomes: Sequence[int], counts: Sequence[int]
) -> tuple[int, ...]:
    """The eight pseudo-random 64-bit words of a client. (`discreet.release._client_draws_compiled` computes them for millions at a time.)"""
    digest = hashlib.blake2b(
        client_message(client, outcomes, counts), key=key.value, person=DRAW_PERSON, digest_size=8 * WORDS
    )
    return struct.unpack(f"<{WORDS}Q", digest.digest())


def uniform_62_bit_integer_of_word(first_word: int) -> int:
    """The uniform integer in [0, 2^62) of a first word."""
    return first_word >> (64 - BITS)


BLOCK_PERSON = b"discreet blocks1"


def rejection_limit(bound: int) -> int:
    """The largest multiple of the bound; words from there on are drawn anew."""
    if not 1 <= bound <= 1 << BITS:
        raise ValueError(f"bound = {bound} is not between 1 and 2^{BITS}")
    return ((1 << BITS) // bound) * bound


def draw_integers_below(randomness: Randomness, bound: int, count: int) -> NDArray[np.int64]:
    """That many independent integers, uniform on 0 .. bound - 1."""
    limit = rejection_limit(bound)
    words = randomness.integers(count)
    if limit < 1 << BITS:
        indices = np.flatnonzero(words >= limit)
        while indices.size:
            words[indices] = randomness.integers(indices.size)
            indices = indices[words[indices] >= limit]
    words -= (words // bound) * bound  # faster than numpy's remainder
    return words


def keyed_word_stream(key: RunKey, message: bytes) -> Iterator[int]:
    """The endless stream of 62-bit words of one client; the same key and message give the same words."""
    number = 0
    while True:
        content = struct.pack("<Q", number) + message
        digest = hashlib.blake2b(content, key=key.value, person=BLOCK_PERSON, digest_size=8 * WORDS).digest()
        for word in struct.unpack(f"<{WORDS}Q", digest):
            yield word >> (64 - BITS)
        number += 1


def keyed_word_rows(key: RunKey, messages: list[bytes]) -> NDArray[np.int64]:
    """The first words of `keyed_word_stream` of many clients, a row of eight for each."""
    start = struct.pack("<Q", 0)
    digests = [
        hashlib.blake2b(start + message, key=key.value, person=BLOCK_PERSON, digest_size=8 * WORDS).digest()
        for message in messages
    ]
    words = np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, WORDS)
    return (words >> np.uint64(64 - BITS)).astype(np.int64)


def next_integer_below(words: Iterator[int], bound: int) -> int:
    """The next integer of a stream, uniform on 0 .. bound - 1."""
    limit = rejection_limit(bound)
    word = next(words)
    while word >= limit:
        word = next(words)
    return word % bound
