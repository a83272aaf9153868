"""One JSON text for each value, and its digest: UTF-8, sorted keys, no spaces, every number the shortest that reads back as itself."""

import hashlib
import json
from typing import Any

from discreet.errors import DiscreetError


def canonical(value: Any) -> str:
    """The one JSON text of a value."""
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:
        raise DiscreetError("an agreement holds texts that can be written in UTF-8 only") from None
    except ValueError:
        raise DiscreetError("an agreement holds finite numbers only") from None
    return text


def digest(content: bytes) -> str:
    """'sha256:' and the 64 hexadecimal digits."""
    return "sha256:" + hashlib.sha256(content).hexdigest()
