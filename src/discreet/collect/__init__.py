"""The collector: a service that takes one sample of each client, counts each once, and shows what has been learnt so far."""

__all__: list[str] = []
