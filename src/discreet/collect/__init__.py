"""The collector: a service that takes one sample of each client, counts each once, and shows what has been learnt so far."""

from typing import TYPE_CHECKING, Any

from discreet.collect._sqlite import open_store
from discreet.errors import need_extra

if TYPE_CHECKING:
    from discreet.collect._export import export
    from discreet.collect._service import service
    from discreet.collect._serving import serve

__all__ = ["export", "open_store", "serve", "service"]


def __getattr__(name: str) -> Any:
    """What serves or exports needs more than a store does, and is imported when it is first used."""
    if name not in ("export", "serve", "service"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        if name == "export":
            from discreet.collect._export import export

            return export
        from discreet.collect._service import service
        from discreet.collect._serving import serve
    except ImportError as missing:
        need_extra("collect", missing)
    return {"serve": serve, "service": service}[name]
