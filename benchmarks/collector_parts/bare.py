"""The plainest endpoint that keeps what it is sent: it reads JSON, inserts one row and commits, with the durability of a store.

`python -m benchmarks.collector_parts.bare WHERE`: a Starlette application on uvicorn. SQLite has one writer, behind a lock;
of PostgreSQL each
thread of the pool has a connection, so that the server can put commits together. It knows no agreement, no client twice, no limits.
"""

import json
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

Insert = Callable[[str, int], None]


def into_sqlite(path: str) -> Insert:
    """One connection, write-ahead log, synchronous = FULL."""
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for setting in ("journal_mode = WAL", "synchronous = FULL"):
        database.execute(f"PRAGMA {setting}")
    database.execute("CREATE TABLE IF NOT EXISTS samples (client TEXT, sample INTEGER)")
    lock = threading.Lock()

    def insert(client: str, sample: int) -> None:
        with lock:
            database.execute("INSERT INTO samples VALUES (?, ?)", (client, sample))

    return insert


def into_postgres(address: str) -> Insert:
    """A connection for each thread."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS bare_samples (client text, sample integer)")
    own = threading.local()

    def insert(client: str, sample: int) -> None:
        if not hasattr(own, "connection"):
            own.connection = psycopg.connect(address, autocommit=True)
        own.connection.execute("INSERT INTO bare_samples VALUES (%s, %s)", (client, sample))

    return insert


def main() -> None:
    where = sys.argv[1]
    insert = into_postgres(where) if "://" in where else into_sqlite(where)

    async def samples(request: Request) -> JSONResponse:
        row: Any = await request.json()
        await run_in_threadpool(insert, row["client"], row["sample"])
        return JSONResponse({"counted": 1})

    app = Starlette(routes=[Route("/samples", samples, methods=["POST"])])
    bound = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"address": f"http://127.0.0.1:{bound.getsockname()[1]}"}), flush=True)
    uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="critical")).run(sockets=[bound])


if __name__ == "__main__":
    main()
