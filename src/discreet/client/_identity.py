"""Who a device is, to nobody but itself: a secret of its own, made once, from which its name in each collection is made.

Identity and ledger belong together: the ledger notes a digest of the identity when the two first meet. A device that finds one without the
other has lost its memory or its names, and says so. It never starts anew by itself: whoever deletes or empties a ledger would else be asked
for fresh samples, again and again.

    neither there            the secret is written under a passing name, its digest is noted in the ledger, then the file gets its name
    cut short in between     the secret under the passing name is the one that the ledger names, and is taken on
    identity without ledger  refused (`discreet.ledger`)
    ledger without identity  refused, once the ledger has noted one
"""

import hashlib
import hmac
import os
from contextlib import suppress
from pathlib import Path

from discreet._files import read_private, sync_folder
from discreet.errors import LedgerError
from discreet.ledger import Ledger
from discreet.release._keyed import parse_secret, write_secret

_PASSING = ".new"
_LARGEST_FILE = 1024


def open_identity(path: str | Path, ledger: Ledger) -> bytes:
    """The secret of a device, in a file that is its owner's alone (0600); made with the ledger's first use.

    Args:
        path: where the file lies.
        ledger: the device's own.

    Returns:
        The secret.

    Raises:
        LedgerError: where the two do not belong together, or one of them is lost.
        DiscreetError: for a file that is a link, belongs to somebody else or may be read by others.
    """
    kept, passing = Path(path), Path(f"{path}{_PASSING}")
    with ledger.binding() as binding:
        if os.path.lexists(kept):
            secret = _read(kept)
            if binding.identity is None and not binding.samples:
                raise LedgerError(
                    f"ledger {ledger.path} is new and empty, but identity {kept} is there: this device has spent from another ledger. "
                    f"Restore that one. To start anew on purpose remove {kept}: collectors will then count this device as another one"
                )
        elif binding.identity is None:
            if not os.path.lexists(passing):
                write_secret(passing)
            secret = _read(passing)
        else:
            secret = _read(passing) if os.path.lexists(passing) else b""
            if _digest(secret) != binding.identity:
                raise LedgerError(
                    f"identity {kept} is missing, and ledger {ledger.path} belongs to it: without it this device would be somebody else to "
                    f"every collector, and would be counted twice. Restore {kept} from a copy"
                )
        if binding.identity is None:
            binding.bind(_digest(secret))
        elif binding.identity != _digest(secret):
            raise LedgerError(
                f"identity {kept} does not belong to ledger {ledger.path}, which was used with another one; give the two that belong together"
            )
    if not os.path.lexists(kept):
        with suppress(FileNotFoundError):  # another process of this device was quicker
            os.rename(passing, kept)
        sync_folder(kept.parent)
    return secret


def _read(path: Path) -> bytes:
    fix = "give the path of the device's own file: identity="
    return parse_secret(read_private(path, what="identity", most=_LARGEST_FILE, fix=fix, own=True), path)


def _digest(secret: bytes) -> str:
    if not secret:
        return ""
    return hmac.new(secret, b"discreet identity of a ledger", hashlib.sha256).hexdigest()[:32]
