"""What a request is refused with: a status code and one sentence, which says what is allowed and never what was sent."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from discreet._protocol import JSON

RETRY_SECONDS = 1  # after which a collector that could not take a request may be asked again


class RequestProblem(Exception):
    """A request that is refused. `more`: further fields of the answer."""

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = dict(headers or {})
        self.more = dict(more or {})

    @property
    def answer(self) -> Response:
        """What is sent."""
        body = json.dumps({"error": self.sentence, **self.more}).encode()
        return Response(
            body, status_code=self.status, media_type=JSON, headers={"Cache-Control": "no-store", **self.headers}
        )


def bad_request(sentence: str) -> RequestProblem:
    """A body or a query that is not what its type says."""
    return RequestProblem(400, sentence)


def unprocessable(sentence: str) -> RequestProblem:
    """A body that can be read, and does not fit the agreement."""
    return RequestProblem(422, sentence)


def unavailable(sentence: str) -> RequestProblem:
    """What cannot be answered now: the same may be sent again, and is counted once."""
    again = f"{sentence}; send the same again in a moment, under the same keys"
    return RequestProblem(503, again, headers={"Retry-After": str(RETRY_SECONDS)})
