"""Who may speak: anybody, or those whom tokens were handed out to.

A token is the name of one client; a gateway's token goes into a header, and its holder names clients itself. The service holds digests
of tokens and looks up digests, so that how long a look takes says nothing about a token.

What this does to anonymity: whoever handed out the tokens, and holds the store or watches requests, can tell which of them have spoken and
on which day. No table says what they said. Without tokens nobody is known, and anybody can speak under as many
names as they like.
"""

import os
import re
import secrets
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from discreet._files import check_private, reason, written
from discreet._protocol import MOST_NAME
from discreet._showing import counted
from discreet.collect._problems import Problem
from discreet.collect._store import digest
from discreet.errors import DiscreetError, check_count

NAME = re.compile(rf"[!-~]{{1,{MOST_NAME}}}")  # of a client, a key or a token
SPELLED = f"1 to {MOST_NAME} visible ASCII characters without a space"
MOST_TOKENS = 10_000_000
_BEARER = "bearer "
_SHORTEST = 16  # characters of a token, which are to be guessed by nobody
_LARGEST_FILE = 1 << 31


@dataclass(frozen=True)
class Enrolment:
    """Whom samples are taken from: anybody where there is neither a list of tokens nor one of gateways."""

    clients: frozenset[bytes] | None = None
    gateways: frozenset[bytes] | None = None

    @classmethod
    def of(cls, tokens: Iterable[str] | None = None, gateways: Iterable[str] | None = None) -> "Enrolment":
        """The enrolment of those who hold these tokens. One that is in both lists is refused: its client could speak for many."""
        found = cls(*(None if each is None else frozenset(map(_digest, each)) for each in (tokens, gateways)))
        both = (found.clients or frozenset()) & (found.gateways or frozenset())
        if both:
            raise DiscreetError(
                f"tokens of clients and of gateways share {counted(len(both), 'token')}, and a gateway may speak for any number of clients; "
                "make others for the gateways with: discreet enrol"
            )
        return found

    @property
    def needed(self) -> bool:
        """Whether names have to be known."""
        return self.clients is not None or self.gateways is not None

    def names_freely(self, authorization: list[str]) -> bool:
        """Whether the sender of these Authorization headers may name clients itself; a token that is no gateway's is refused."""
        tokens = [said[len(_BEARER) :].strip() for said in authorization if said.lower().startswith(_BEARER)]
        if self.gateways is None or not tokens:  # what other schemes say is for a proxy
            return not self.needed
        if len(tokens) == 1 and tokens[0].isascii() and _digest(tokens[0]) in self.gateways:
            return True
        raise Problem(
            401,
            "the Authorization header does not hold a token of a gateway of this collection",
            headers={"WWW-Authenticate": "Bearer"},
        )

    def knows(self, name: str) -> bool:
        """Whether a name is one of the clients' tokens."""
        return self.clients is not None and _digest(name) in self.clients


def _digest(token: str) -> bytes:
    return digest("discreet token", token)


def write_tokens(path: str | Path, number: int) -> None:
    """Write fresh tokens, one on each line, to a new file that its owner alone may read."""
    check_count("number", number, most=MOST_TOKENS, fix="it is how many clients there are")
    with written(path, what="file of tokens", private=True) as file:
        for _ in range(number):
            file.write(secrets.token_urlsafe(24).encode() + b"\n")


def read_tokens(path: str | Path) -> list[str]:
    """The tokens in a file, one on each line; refused if anybody but its owner may read it, or if one could be guessed."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe is not waited for
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise DiscreetError(f"file of tokens {path} is not a plain file; make one with: discreet enrol")
            check_private(path, status, what="file of tokens")
            lines = file.read(_LARGEST_FILE).decode("ascii").split()
    except UnicodeDecodeError:
        raise DiscreetError(f"file of tokens {path} is not ASCII text, one token on each line") from None
    except DiscreetError:
        raise
    except (OSError, ValueError) as error:
        raise DiscreetError(f"file of tokens {path} cannot be read: {reason(error)}") from None
    for number, token in enumerate(lines, start=1):
        if len(token) < _SHORTEST or NAME.fullmatch(token) is None:
            raise DiscreetError(
                f"{path}, token {number} is not {SPELLED}, at least {_SHORTEST} of them; make them with: discreet enrol"
            )
    if not lines:
        raise DiscreetError(f"{path} holds no token; make some with: discreet enrol")
    if len(set(lines)) < len(lines):
        raise DiscreetError(f"{path} holds a token twice; each is for another client")
    return lines
