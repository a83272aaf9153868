"""Labels of which only the digest is known, as in an agreement that does not list them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from discreet.domain._role import Domain
from discreet.errors import DiscreetError

_DIGEST = re.compile("sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class Digested(Domain):
    """So many labels with that digest. It can be told whether a list is the one meant, and nothing more.

    Args:
        size: how many labels there are.
        labels_digest: the digest of the list.
    """

    size: int
    labels_digest: str

    @property
    def labels(self) -> None:
        """None: they are not known."""
        return

    @property
    def names(self) -> NoReturn:
        """An error: they are not known."""
        self.refuse()

    @property
    def values(self) -> NoReturn:
        """An error: the labels are not known."""
        self.refuse()

    def numbers(self, records: Iterable[Any]) -> NoReturn:
        """An error: the labels are not known."""
        self.refuse()

    def find_numbers(self, records: Iterable[Any]) -> NoReturn:
        """An error: the labels are not known."""
        self.refuse()

    def to_samples(self, numbers: NDArray[np.int64]) -> NoReturn:
        """An error: the labels are not known."""
        self.refuse()

    @property
    def terms(self) -> dict[str, Any]:
        """How many labels there are, and their digest."""
        return {"size": self.size, "labels": self.labels_digest}

    def refuse(self) -> NoReturn:
        """Say that the labels are not known."""
        raise DiscreetError("the agreement holds a digest of its labels; pass the family it was made with")


def is_digest(value: Any) -> bool:
    """Whether a value is a digest as agreements write them."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None
