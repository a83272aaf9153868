"""Where a collector is. Samples travel encrypted: plain http goes to this machine alone, unless somebody insists.

A sample is private on its own, and yet: who took part and when is seen by whoever can read the way, and a name that is stolen on it lets
others speak in one's place.
"""

import ipaddress
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from discreet.errors import DiscreetError

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """A collector's address, checked. `folder`: what stands before its paths."""

    scheme: str
    host: str
    port: int
    folder: str
    tls: ssl.SSLContext | None = None

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host_and_port}{self.folder}"

    @property
    def host_and_port(self) -> str:
        """As a request names them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def address_of(url: Any, *, plain_http: bool = False, tls: ssl.SSLContext | None = None) -> Address:
    """The address that is meant.

    Args:
        url: https://HOST, with a port and a folder where there are some; http:// for this machine.
        plain_http: whether plain http may go elsewhere.
        tls: whom to believe; by default those whom the system does.

    Returns:
        The address.

    Raises:
        DiscreetError: for what is no such address.
    """
    if not isinstance(url, str):
        raise DiscreetError(f"url = {url!r} is not a text; give the collector's address, such as https://example.org")
    if not url.isprintable() or " " in url:  # some of which would be left out in silence
        raise DiscreetError(f"url = {url!r} holds spaces or what is no visible character; leave them out")
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode()  # as names travel: in ASCII
    except ValueError as error:
        raise DiscreetError(f"url = {url!r} is not an address: {error}") from None
    if parts.scheme not in _PORTS or not host:
        raise DiscreetError(
            f"url = {url!r} is not an address; give the collector's, such as https://example.org, or http://127.0.0.1:8000 on this machine"
        )
    if parts.username is not None or parts.password is not None:
        raise DiscreetError("url holds a name or a password, which would be kept in logs; leave them out")
    if parts.query or parts.fragment:
        raise DiscreetError(f"url = {url!r} has a question or a fragment; give the collector's address alone")
    if not parts.path.isascii():
        raise DiscreetError(f"url = {url!r} has a folder with letters that addresses do not have; escape them")
    if parts.scheme == "http" and not (plain_http or _is_here(host)):
        raise DiscreetError(
            f"url = {url!r} is not encrypted: others on the way would see who takes part; use https://, or say plain_http=True "
            "(--plain-http) on a network of your own"
        )
    context = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
    return Address(parts.scheme, host, port or _PORTS[parts.scheme], parts.path.rstrip("/"), context)


def _is_here(host: str) -> bool:
    """Whether that is this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
