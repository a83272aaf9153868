"""`open_identity`: a device's own secret, created once, from which its name in each collection is derived.

Identity and ledger belong together: the ledger notes a digest of the identity when the two first meet. A device that finds one without the
other raises an error and never starts anew by itself. Otherwise, deleting a ledger would make the device release fresh samples again and
again.

    neither there            the secret is written under a temporary name, its digest is noted in the ledger, then the file gets its name
    interrupted in between   the secret under the temporary name is the one in the ledger, and is used
    identity without ledger  an error (`discreet.ledger`)
    ledger without identity  an error, once the ledger has noted one
"""

import hashlib
import hmac
import os
from contextlib import suppress
from pathlib import Path

from discreet._base.files import NEW_FILE, read_private, reason, sync_folder
from discreet.errors import DiscreetError, LedgerError
from discreet.ledger import PASSING, Ledger
from discreet.release import fresh_secret, parse_secret, secret_line

_LARGEST_FILE = 1024


def open_identity(path: str | Path, ledger: Ledger) -> bytes:
    """The secret of a device, in a file that only its owner may read (0600); created with the ledger's first use.

    Args:
        path: of the file.
        ledger: the device's ledger.

    Returns:
        The secret.

    Raises:
        LedgerError: if the two do not belong together, or one of them is lost.
        DiscreetError: for a file that is a link, belongs to another user or is readable by others.
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
        with suppress(FileNotFoundError):  # another process of this device has renamed it
            os.rename(passing, kept)
        sync_folder(kept.parent)
    return secret


def _named_secret(kept: Path, passing: Path, identity: str, ledger: Ledger) -> bytes:
    """The secret in the ledger's note, of a device that was interrupted before its file had its name, or is about to rename it."""
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
    """Write a fresh secret durably under the temporary name, in place of an incomplete one."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    secret = fresh_secret().value
    try:
        handle = os.open(path, os.O_WRONLY | NEW_FILE, 0o600)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, 0o600)  # regardless of the umask
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
        raise LedgerError(f"identity {path} is damaged or not an identity; restore it from a copy") from None


def _digest(secret: bytes) -> str:
    return hmac.new(secret, b"discreet identity of a ledger", hashlib.sha256).hexdigest()[:32]
