"""The collector: a service that takes one sample of each client, counts each once, and shows what has been learnt so far."""

from discreet.collect._opening import open_store

__all__ = ["open_store"]
