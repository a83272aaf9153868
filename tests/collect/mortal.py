"""A service that is begun quickly, from a process that has imported all of it: to be killed (`tests.collect.kills`)."""

import contextlib
import threading
from multiprocessing.connection import Connection
from typing import Any

from discreet.collect import _serving as serving, open_store
from discreet.collect._counting import Arrival, Verdict
from discreet.errors import StoreError


def serve_until_killed(where: str, told: Connection, careless: bool) -> None:
    """A service, which tells its address. A careless one acknowledges what it writes a moment later."""
    if careless:
        vars(serving)["open_store"] = _Careless
    with contextlib.suppress(StoreError):  # the database is gone: another one will be tried
        serving.serve(where, port=0, listening=told.send)


class _Careless:
    """A wrong store, which must be found out."""

    def __init__(self, where: str, create: bool = True, seal: str | None = None) -> None:
        self._store = open_store(where, create=create, seal=seal)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def count_arrivals(self, agreement: str, round: int, arrivals: list[Arrival], day: str) -> list[Verdict]:
        threading.Timer(0.05, self._store.count_arrivals, (agreement, round, arrivals, day)).start()
        return [Verdict.COUNTED] * len(arrivals)
