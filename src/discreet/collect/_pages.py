"""The pages of a collection: what it has learnt so far, and one to take part by. Files of ours, and a script that is built of `clients/js`.

They ask the service they come from and nobody else, hold no script or style inside, and so work under the strictest policy that
browsers know. They are the same for everybody: what they show they ask for.
"""

import hashlib
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

LIVE, TAKE_PART = "/", "/take-part"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
_PLACES = {LIVE: "live.html", TAKE_PART: "take-part.html"} | {
    f"/pages/{name}": name for name in ("collector.css", "live.js", "take-part.js")
}


def page_routes() -> list[Route]:
    """Where the pages are, and what they are made of."""
    return [_route(path, name) for path, name in _PLACES.items()]


def _route(path: str, name: str) -> Route:
    content = (resources.files(__package__) / "pages" / name).read_bytes()
    # Asked for anew each time, and sent again only if it has changed: a page and its script are of one version.
    headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"', "Cache-Control": "no-cache"}
    kind = _TYPES[name[name.rindex(".") :]]

    async def answer(request: Request) -> Response:
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if headers["ETag"] in known:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    return Route(path, answer, methods=["GET"], name=name)
