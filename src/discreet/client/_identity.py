"""Who a device is, to nobody but itself: a secret of its own, made once, from which its name in each collection is made."""

import os
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.release._keyed import read_secret, write_secret


def identity_in(path: str | Path) -> bytes:
    """The secret in a file that is its owner's alone (0600); a fresh one where there is no file yet, on disk before it is used."""
    if not os.path.lexists(path):
        try:
            write_secret(path)
        except DiscreetError:
            if not os.path.lexists(path):  # else another process was quicker, and made it whole
                raise
    return read_secret(path).value
