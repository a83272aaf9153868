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

from discreet._base.files import read_private, reason, sync_folder
from discreet.errors import DiscreetError, LedgerError
from discreet.ledger import PASSING, Ledger
from discreet.release import fresh_secret, parse_secret, secret_line

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
    kept, passing = Path(path), Path(f"{path}{PASSING}")
    with ledger.binding() as binding:
        if os.path.lexists(kept):
            secret = _read(kept)
            if binding.identity is None and not binding.used:
                raise LedgerError(
                    f"ledger {ledger.path} is new and empty, but identity {kept} is there: this device has spent from another ledger. "
                    f"Restore that one. To start anew on purpose remove {kept}: collectors will then count this device as another one"
                )
        elif binding.identity is None:
            secret = _write_passing(passing)
        else:
            secret = _named_secret(kept, passing, binding.identity, ledger)
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


def _named_secret(kept: Path, passing: Path, identity: str, ledger: Ledger) -> bytes:
    """The secret that a ledger names, of a device that was cut short before its file had its name, or that is about to give it."""
    for path in (passing, kept):  # in the order of the renaming
        if os.path.lexists(path):
            with suppress(FileNotFoundError):
                secret = _read(path)
                if _digest(secret) == identity:
                    return secret
    raise LedgerError(
        f"identity {kept} is missing, and ledger {ledger.path} belongs to it: without it this device would be somebody else to every "
        f"collector, and would be counted twice. Restore {kept} from a copy"
    )


def _write_passing(path: Path) -> bytes:
    """A fresh secret in a file under its passing name, durable; one that was cut short on the way is of no use, and goes."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    secret = fresh_secret().value
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, 0o600)  # whatever the umask
            file.write(secret_line(secret))
            file.flush()
            os.fsync(handle)
    except (OSError, ValueError) as error:
        raise LedgerError(f"identity {path} cannot be made: {reason(error)}") from None
    sync_folder(path.parent)
    return secret


def _read(path: Path) -> bytes:
    fix = "give the path of the device's own file, or restore it from a copy: identity="
    content = read_private(path, what="identity", most=_LARGEST_FILE, fix=fix, own=True)
    try:
        return parse_secret(content, path)
    except DiscreetError:
        raise LedgerError(f"identity {path} is damaged or is no identity; restore it from a copy") from None


def _digest(secret: bytes) -> str:
    return hmac.new(secret, b"discreet identity of a ledger", hashlib.sha256).hexdigest()[:32]
