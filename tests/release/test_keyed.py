"""Keyed draws: BLAKE2b as the RFC has it, a canonical and injective message, and a secret that stays one."""

import hashlib
import os
import pickle
import shlex
import stat
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from discreet.errors import DiscreetError
from discreet.release import _keyed_reports as blake2b, _randomness as keyed
from discreet.release._randomness import (
    InputDigest,
    Question,
    RunKey,
    Secret,
    client_message,
    pseudo_random_words_of_client,
    read_secret,
    write_secret,
)

State = NDArray[np.uint64]

QUESTION = Question(value="value")


def key_of(question: Question) -> RunKey:
    return Secret(bytes(range(32))).run_key("ab" * 32, 1, question)


KEY = key_of(QUESTION)


# RFC 7693, Appendix A: BLAKE2b-512 of "abc".
ABC = (
    "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
    "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"
)
# The reference implementation's test vectors, key 00 01 ... 3f: the empty message, and the single byte 00.
KEYED_EMPTY = (
    "10ebb67700b1868efb4417987acf4690ae9d972fb7a590c2f02871799aaa4786"
    "b5e996e8f0f4eb981fc214b005f42d2ff4233499391653df7aefcbc13fc51568"
)
KEYED_ZERO = (
    "961f6dd1e4dd30f63901690c512e78e4b45e4742ed197c3c5e45c549fd25f2e4"
    "187b0bc9fe30492b16b0d0bc4ef9b0f34c7003fac09a5ef1532e69430234cebd"
)


def compressed(state: State, block: bytes, so_far: int) -> bytes:
    words_of = np.frombuffer(block.ljust(128, b"\0"), dtype="<u8").copy()
    blake2b.compress_block(state, words_of, np.uintp(0), np.uint64(so_far), True)
    return state.tobytes()


def plain_state(key_length: int) -> State:
    state = blake2b._INITIAL.copy()
    state[0] ^= np.uint64(0x01010000 + 256 * key_length + 64)
    return state


def test_the_vector_of_the_rfc() -> None:
    assert compressed(plain_state(0), b"abc", 3).hex() == ABC


def test_the_keyed_vectors() -> None:
    key = bytes(range(64))
    assert compressed(plain_state(64), key, 128).hex() == KEYED_EMPTY
    state = blake2b.keyed_hash_state(key, b"", 64)
    assert compressed(state, b"\0", 129).hex() == KEYED_ZERO


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.binary(min_size=1, max_size=64),
    st.binary(max_size=16),
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=70),
)
def test_whole_words_hash_as_the_standard_library_has_it(key: bytes, person: bytes, content: list[int]) -> None:
    room = np.full(len(content) + blake2b.BLOCK, 7, dtype=np.uint64)
    room[: len(content)] = content
    state = blake2b.keyed_hash_state(key, person, 32)
    blake2b.absorb_message(state, room, len(content))
    expected = hashlib.blake2b(np.array(content, dtype="<u8").tobytes(), key=key, person=person, digest_size=32)
    assert state[:4].tobytes() == expected.digest()


PAIRS = st.dictionaries(st.integers(0, 2**32 - 4), st.one_of(st.integers(1, 3), st.integers(1, 2**40)), max_size=6)
CLIENTS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))


@pytest.mark.slow
@settings(deadline=None)
@given(CLIENTS, PAIRS, CLIENTS, PAIRS)
def test_no_two_inputs_share_a_message(
    one: int | str, first: dict[int, int], two: int | str, second: dict[int, int]
) -> None:
    """Two messages are one if and only if it is the same client with the same law."""

    def law(pairs: dict[int, int]) -> dict[int, Fraction]:
        return {x: Fraction(count, sum(pairs.values())) for x, count in pairs.items()}

    def same(other: int | str, pairs: dict[int, int]) -> bool:
        return named(one) == named(other) and law(first) == law(pairs)

    def named(client: int | str) -> str:
        """Integers as they are written: a text that is written like one is that integer."""
        return str(client)

    written = client_message(one, list(first), list(first.values()))
    assert (written == client_message(two, list(second), list(second.values()))) == same(two, second)
    assert (written == client_message(one, list(second), list(second.values()))) == same(one, second)
    assert written == client_message(one, list(first), [6 * count for count in first.values()])


def test_an_integer_and_how_it_is_written_are_one_client() -> None:
    assert client_message(1, [0], [1]) == client_message("1", [0], [1])
    assert client_message(1, [0], [1]) != client_message("01", [0], [1])
    assert client_message("a", [], []) != client_message("a\0", [], [])
    assert client_message(0, [1], [2]) != client_message(0, [2], [1])


def test_every_part_of_the_key_matters() -> None:
    secret = Secret(bytes(32))
    keys = [
        secret.run_key("00" * 32, 1, QUESTION),
        secret.run_key("00" * 32, 2, QUESTION),
        secret.run_key("01" + "00" * 31, 1, QUESTION),
        Secret(bytes(31) + b"\1").run_key("00" * 32, 1, QUESTION),
    ]
    drawn = [pseudo_random_words_of_client(key, "client", [3], [1]) for key in keys]
    assert len(set(drawn)) == len(drawn)
    assert pseudo_random_words_of_client(keys[0], "client", [3], [1]) == drawn[0]
    assert pseudo_random_words_of_client(keys[0], "client", [3, 4], [1, 1]) != drawn[0]
    with pytest.raises(DiscreetError, match="round = 0"):
        secret.run_key("00" * 32, 0, QUESTION)
    for name in ("00" * 31, "zz" * 32, "ab " * 32, "0" * 63, "00" * 32 + "\n"):
        with pytest.raises(DiscreetError, match="64 hexadecimal digits"):
            secret.run_key(name, 1, QUESTION)


NAMES = st.text(st.sampled_from("ab\0\1\2\ud800é"), max_size=3)
QUESTIONS = st.one_of(
    st.builds(Question, value=NAMES),
    st.builds(Question, value=NAMES, count=NAMES),
    st.builds(Question, value=NAMES, weight=NAMES),
)


@given(QUESTIONS, QUESTIONS)
def test_no_two_questions_share_a_key(one: Question, two: Question) -> None:
    assert (one.encoding == two.encoding) == (one == two)
    assert (key_of(one) == key_of(two)) == (one == two)


DIGESTS = st.builds(InputDigest, st.tuples(*4 * [st.integers(0, 2**64 - 1)]))


@given(DIGESTS, DIGESTS, DIGESTS)
def test_digests_add_up_in_any_order(one: InputDigest, two: InputDigest, three: InputDigest) -> None:
    assert one + two == two + one
    assert (one + two) + three == one + (two + three)
    assert one + InputDigest() == one
    assert all(0 <= word < 2**64 for word in (one + two).words)
    assert (one.keyed_hash(KEY) == two.keyed_hash(KEY)) == (one == two)
    assert one.keyed_hash(KEY) != one.keyed_hash(RunKey(b"another"))
    assert len(one.keyed_hash(KEY)) == 32


def test_golden_words() -> None:
    """A release must give the same samples after an upgrade: these words never change."""
    assert pseudo_random_words_of_client(KEY, 7, [1, 5], [2, 1]) == (
        2149004077134277797, 2424739192465769092, 11054140310961443231, 8313710058394922883,
        13233122053190419172, 12552100522282771562, 8088507885292339239, 8890888932433630243,
    )  # fmt: skip
    assert pseudo_random_words_of_client(KEY, "sept", [1, 5], [2**40, 3]) == (
        1896961590990224395, 3170204618329765739, 6181789335090271986, 5683519878110201268,
        6659990493750689240, 4141318204997629360, 17229572646469956985, 12747123220212934144,
    )  # fmt: skip


def test_words_are_uniform() -> None:
    """Each of the 64 bits of each word is set half of the time, over 4,000 clients (within five standard deviations)."""
    drawn = np.array([pseudo_random_words_of_client(KEY, client, [0], [1]) for client in range(4000)], dtype=np.uint64)
    bits = np.unpackbits(drawn.view(np.uint8).reshape(4000, -1), axis=1)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(4000)


def test_a_secret_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    before = os.umask(0)
    try:
        write_secret(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(read_secret(path).value) == 32
    assert read_secret(path) == read_secret(str(path))
    with pytest.raises(DiscreetError, match="exists already"):
        write_secret(path)
    for mode in (0o640, 0o604, 0o620, 0o602, 0o644):
        path.chmod(mode)
        with pytest.raises(DiscreetError, match="chmod 600"):
            read_secret(path)


@pytest.mark.parametrize(
    "value", [b"", b"\0", bytes(16), bytes(31), bytes(33), bytes(64), bytearray(32), "0" * 32, None, 32]
)
def test_a_secret_is_32_bytes(value: Any) -> None:
    with pytest.raises(DiscreetError, match="32 random bytes"):
        Secret(value)


def test_two_secrets_differ(tmp_path: Path) -> None:
    write_secret(tmp_path / "one")
    write_secret(tmp_path / "two")
    assert read_secret(tmp_path / "one") != read_secret(tmp_path / "two")


@pytest.mark.parametrize(
    "content", [b"", b"hunter2\n", b"discreet-secret-1 00\n", b"discreet-secret-1 " + b"g" * 64, b"x" * 5000]
)
def test_what_is_no_secret_is_refused_without_showing_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(DiscreetError, match="does not hold a secret") as refused:
        read_secret(path)
    assert "hunter2" not in str(refused.value)


def test_secret_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(DiscreetError, match="cannot be read"):
        read_secret(tmp_path / "nowhere")
    with pytest.raises(DiscreetError, match="cannot be written"):
        write_secret(tmp_path / "no" / "folder")
    with pytest.raises(DiscreetError, match=r"cannot be read|not a plain file"):
        read_secret(tmp_path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    reader = os.open(tmp_path / "pipe", os.O_RDWR)  # so that opening it does not wait
    with pytest.raises(DiscreetError, match="not a plain file"):
        read_secret(tmp_path / "pipe")
    os.close(reader)


def test_two_names_of_one_secret_do_not_have_two_records_of_its_rounds(tmp_path: Path) -> None:
    """A symbolic link shares the record; a hard link could not, and is refused under either name until one is gone."""
    path, soft, hard = tmp_path / "secret", tmp_path / "soft link", tmp_path / "hard link"
    write_secret(path)
    soft.symlink_to(path)
    assert read_secret(soft).state == read_secret(path).state
    hard.hardlink_to(path)
    for name in (path, soft, hard):
        with pytest.raises(
            DiscreetError,
            match=r"has 2 names \(hard links\).*keep the one beside which NAME\.rounds lies.*a new secret.*releases every client anew",
        ):
            read_secret(name)
        with pytest.raises(DiscreetError, match="has 2 names"):
            read_secret(name, state=tmp_path / "state")
    hard.unlink()
    assert read_secret(path).state == tmp_path / "secret.rounds"


def test_the_advice_finds_the_other_names(tmp_path: Path) -> None:
    path, hard = tmp_path / "the secret", tmp_path / "other"
    write_secret(path)
    hard.hardlink_to(path)
    with pytest.raises(DiscreetError) as refused:
        read_secret(path)
    command = str(refused.value).partition("(find ")[2].partition(", then")[0]
    found = subprocess.run(["find", *shlex.split(command)], capture_output=True, text=True, check=True).stdout
    assert set(found.splitlines()) == {str(path), str(hard)}


def test_secrets_and_keys_do_not_print_themselves() -> None:
    secret = Secret(b"\x5a" * 32)
    key = secret.run_key("00" * 32, 1, QUESTION)
    for shown in (repr(secret), str(secret), repr(key), f"{key}"):
        assert "5a" not in shown
        assert "Z" not in shown
        assert key.value.hex()[:8] not in shown
    assert pickle.loads(pickle.dumps(key)) == key  # a worker gets the key of a run
    assert keyed.uniform_62_bit_integer_of_word(2**64 - 1) == 2**62 - 1
