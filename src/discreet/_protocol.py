"""What a collector and those who send to it say to each other: paths, names of fields, and how a client is named there.

A sample on its way names the agreement and the round it was released under, the client, and a key: whoever sends a sample again sends
the same key, and is answered again. A collection is named by the agreement that it began with; agreements that follow it are of the same
collection, and a client speaks once in each round of a collection, under whichever of them. The name of a client says nothing about it
outside the collection: devices make it of a secret of their own that never leaves them.

    POST /samples   {"agreement": ID, "round": 1, "client": NAME, "key": KEY, "sample": OUTCOME}
                    {"agreement": ID, "round": 1, "samples": [{"client": NAME, "key": KEY, "sample": OUTCOME}, ...]}
                    or an Arrow stream with the columns client, key, sample, and agreement and round in its schema's metadata
    answered by     {"counted": how many are new, "again": how many were there under their key, "refused": [places of clients that
                    had spoken]}; one sample of a client that had spoken is a 409. A problem is {"error": one sentence}.
    GET /collection {"collection": ID, "agreement": ID of the newest, "round": the open round, "enrolment": whether names have to be known,
                    "agreements": [{"agreement": ID, "follows": ID or null, "rounds": J, "open": [those in which samples are taken],
                    "purpose": TEXT}, ...],
                    "beside": [{"agreement": ID of the newest, "purpose": TEXT}, ...] other collections that are kept here}
    GET /estimate   what `discreet estimate --json` prints, and "round": R, "days": [[DAY, how many samples came], ...], "liars"
"""

import hashlib
import hmac

AGREEMENT = "/agreement"  # the newest, or ?agreement=ID: its text, as a file holds it
WEIGHTS = "/weights"  # those beside an agreement's file, where there are too many to list
COLLECTION = "/collection"
SAMPLES = "/samples"
ESTIMATE = "/estimate"  # ?agreement=ID&round=1&confidence=0.95
HEALTH = "/health"
METRICS = "/metrics"

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"

MOST_NAME = 200  # characters of a client's name, and of a key
MOST_BATCH = 10_000  # samples of one request


def name_in(collection: str, secret: bytes, client: str = "") -> str:
    """How a client is named in a collection: without the secret, names of one client in two collections cannot be told to be one's.

    Args:
        collection: the id of the agreement that the collection began with.
        secret: of the device; or of a gateway, which speaks for many clients.
        client: which of them.

    Returns:
        64 hexadecimal digits.
    """
    said = f"discreet client\0{collection}\0{client}"
    return hmac.new(secret, said.encode(), hashlib.sha256).hexdigest()


def key_of(name: str, agreement: str, round: int) -> str:
    """The key of the sample that a client so named sends under an agreement in a round: the same however often it is sent."""
    return hashlib.sha256(f"discreet key\0{name}\0{agreement}\0{round}".encode()).hexdigest()
