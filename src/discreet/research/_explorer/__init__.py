"""The explorer: a self-contained page on which you change a client's distribution and the budget and see the cost; and its server.

The page is one file with a style and a script that `clients/js` builds (`make client`), and the bundled flights. Its content policy forbids
loading anything else. Every number on it is that of the library (`tests/research/explorer`).

The server listens only on 127.0.0.1 and rejects requests under another host name. Another site could show the page in a frame and redirect
clicks to it, so every answer, including errors, forbids frames.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources

from discreet.errors import DiscreetError
from discreet.research.data import zone_logbooks

__all__ = ["Explorer", "explorer_page"]

_HOST = "127.0.0.1"
_LARGEST_PORT = 65535


class Explorer:
    """One page, served to this machine.

    Args:
        page: the HTML.
        port: of the server, or 0 for a free one.

    Raises:
        DiscreetError: for an invalid port, or one in use.
    """

    def __init__(self, page: str, *, port: int = 0) -> None:
        if not 0 <= port <= _LARGEST_PORT:
            raise DiscreetError(f"port = {port} is not in [0, {_LARGEST_PORT}]")
        try:
            self._server = ThreadingHTTPServer((_HOST, port), _page_handler_class(page.encode()))
        except OSError as error:
            raise DiscreetError(
                f"port = {port} cannot be used ({error.strerror}); leave it out for a free one"
            ) from None

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{_HOST}:{self._server.server_address[1]}/"

    def serve(self) -> None:
        """Answer until `close` is called."""
        with self._server:
            self._server.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()


def _page_handler_class(content: bytes) -> type[BaseHTTPRequestHandler]:
    class PageHandler(BaseHTTPRequestHandler):
        """The page at /, and nothing else."""

        default_request_version = "HTTP/1.0"  # an unreadable request gets an answer with headers too

        def do_GET(self) -> None:
            self._send_page(with_content=True)

        def do_HEAD(self) -> None:
            self._send_page(with_content=False)

        def _send_page(self, *, with_content: bool) -> None:
            host = (self.headers.get("Host") or "").rsplit(":", 1)[0]
            if host not in (_HOST, "localhost"):  # another site's name may point here (DNS rebinding)
                self.send_error(403)
            elif self.path.split("?")[0] not in ("/", "/index.html"):
                self.send_error(404)
            else:
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if with_content:
                    self.wfile.write(content)

        def end_headers(self) -> None:
            """End the headers of every answer, including errors."""
            for name, value in _HEADERS.items():
                self.send_header(name, value)
            super().end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    return PageHandler


_HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}


def explorer_page() -> str:
    """The page, with everything it needs in it.

    Returns:
        HTML.
    """
    files = resources.files(__name__)
    text, style, script = (
        (files / name).read_text(encoding="utf-8").strip() for name in ("page.html", "explorer.css", "explorer.js")
    )
    return text.replace("/*STYLE*/", style).replace("/*FLIGHTS*/", _flights_json()).replace("/*SCRIPT*/", script)


def _flights_json() -> str:
    """Every aircraft's flights by time zone, as JSON that cannot end a script tag."""
    books = zone_logbooks()
    rows = [
        f"{name}|" + ",".join(f"{zone}:{count}" for zone, count in enumerate(counts) if count)
        for name, counts in zip(books.clients, books.counts.tolist(), strict=True)
    ]
    text = json.dumps({"zones": books.outcomes, "aircraft": "\n".join(rows)}, separators=(",", ":"))
    return text.replace("<", "\\u003c")
