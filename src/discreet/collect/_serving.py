"""`serve`: the service as one process or several on one socket, with an end that loses nothing.

After SIGTERM or SIGINT a process takes no more requests, writes what it has taken, answers, and ends with 0. After a second signal it ends
at once. Several processes share the socket and the store. A process that dies is replaced, and all of them end with the first one.
"""

import asyncio
import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from discreet.agreement import Agreement
from discreet.audit import MOST_DRAWS
from discreet.client import (
    CollectorKey,
    create_collector_key_file,
    is_host_this_machine,
    normalise_addresses,
    read_collector_key,
)
from discreet.collect._catalogue import (
    agreements_differ_in_purpose_alone,
    labelled_agreement_coding_and_sampler,
    refuse_other_signing_key,
    sign_agreements,
)
from discreet.collect._counting import create_seal_file, read_seal_file
from discreet.collect._pages import (
    Questions,
    add_tokens_to_store,
    read_tokens,
    refuse_tokens_in_both_lists,
)
from discreet.collect._requests import LOCAL, PATIENCE, LimitedConnection, normalise_origin, print_fault_without_message
from discreet.collect._service import METRICS_FOLDER, service
from discreet.collect._sqlite import open_store, store_display_name
from discreet.collect._store import LEAST_PREFIX, SHOWN, Store, unique_id_with_prefix_or_none
from discreet.errors import (
    DiscreetError,
    Range,
    StoreError,
    check_callable,
    check_choice,
    check_count,
    check_flag,
    check_kind,
    check_list,
    check_path,
    check_texts,
)

_LARGEST_PORT = 65535
_BACKLOG = 2048
_KEEP_ALIVE = 30  # seconds without a request
_STOPPING = 20  # seconds for clients to read answers
_MOST_WORKERS = 64
_SECONDS = Range(0.0, 3600.0, low_open=True)
_MOST_FILES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """The settings of a process of the service, as values for a new process. Enrolment and signatures are in the store."""

    store: str
    rounds: tuple[int, ...] = (1,)
    seal: str | None = None
    hosts: tuple[str, ...] | None = None
    origins: tuple[str, ...] = ()
    patience: float = PATIENCE

    def refuse_invalid_settings(self) -> None:
        """Raise an error, before anything is written, for settings that cannot be served."""
        _SECONDS.check("patience", self.patience)
        for number in self.rounds:
            check_count("round", number)
        for origin in self.origins:
            normalise_origin(origin)

    def serve_until_stopped(
        self, bound_socket: socket.socket, listening: Callable[[], None], *, alone: bool = True
    ) -> None:
        """Serve in this process until stopped. `alone`: whether the operator runs it, not the first of several processes."""
        with contextlib.closing(open_store(self.store, create=False, seal=self.seal)) as store:
            app = service(store, rounds=self.rounds, hosts=self.hosts, origins=self.origins, patience=self.patience)
            _Server(app, listening, self.patience, alone=alone).serve_until_stopped(bound_socket)


@dataclass(frozen=True, kw_only=True)
class _StoreAdditions:
    """Additions to a store before it is served."""

    agreements: Sequence[Agreement]
    follows: str | None
    groups: bool
    tokens: Sequence[str]
    gateways: Sequence[str]
    key: str | None
    replace_key: bool
    least: int | None
    shown: str | None
    questions: Questions | None

    def __post_init__(self) -> None:
        refuse_tokens_in_both_lists(self.tokens, self.gateways)
        if self.key is not None and os.path.lexists(self.key):
            read_collector_key(self.key)

    def add_to_store(self, store_name: str, seal: str | None, addresses: Sequence[str]) -> None:
        """Add everything to a store, which then has at least one agreement."""
        create = bool(self.agreements) and self.follows is None
        if seal is not None and not os.path.lexists(seal):
            with contextlib.closing(open_store(store_name, create=create)) as store:
                _refuse_new_seal_of_sealed_store(store, seal)
            create_seal_file(seal)
        with contextlib.closing(open_store(store_name, create=create, seal=seal)) as store:
            store.seal_pool_if_key_given()
            key = None if self.key is None else self._read_or_create_collector_key(store, self.key)
            if self.tokens or self.gateways:
                add_tokens_to_store(store, self.tokens, self.gateways)
            _add_agreements_to_store(store, store_name, self.agreements, self.follows, groups=self.groups)
            if key is not None:
                sign_agreements(store, key, addresses, replace_key=self.replace_key)
            if self.least is not None:
                store.hide_estimates_below(self.least)
            if self.shown is not None:
                store.set_estimate_visibility(self.shown)
            if self.questions is not None:
                store.save_questions(self.agreements[0].id, self.questions.text)

    def _read_or_create_collector_key(self, store: Store, path: str) -> CollectorKey:
        """The key in a file, if it may sign the store. It is created if missing, unless another key has signed the store."""
        if not os.path.lexists(path):
            refuse_other_signing_key(store, None, replace_key=self.replace_key)
            create_collector_key_file(path)
        key = read_collector_key(path)
        refuse_other_signing_key(store, key, replace_key=self.replace_key)
        return key


def serve(
    store: str | Path,
    agreements: Sequence[Agreement] = (),
    *,
    follows: str | None = None,
    groups: bool = False,
    host: str = "127.0.0.1",
    port: int = 8000,
    rounds: Sequence[int] = (1,),
    tokens: str | Path | None = None,
    gateways: str | Path | None = None,
    key: str | Path | None = None,
    addresses: Sequence[str] = (),
    replace_key: bool = False,
    seal: str | Path | None = None,
    least: int | None = None,
    shown: str | None = None,
    questions: str | Path | None = None,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    patience: float = PATIENCE,
    workers: int = 1,
    listening: Callable[[str], None] | None = None,
) -> None:
    """Serve the agreements of a store until the process gets SIGTERM or SIGINT (Ctrl-C).

    Args:
        store: an SQLite file, or the address of a PostgreSQL database: `postgresql://USER@HOST/DATABASE`.
        agreements: to add to it; those it already has are served as well.
        follows: the id, or at least 12 of its first digits, of the agreement in the store that they follow: a client sends one sample
            under all of them.
        groups: whether the agreements are those of public groups, and differ in their purpose alone: a client sends one sample under one
            of them, and estimates of all groups are shown side by side.
        host: the address to listen at; 127.0.0.1 is this machine only.
        port: of the service; 0 takes a free one.
        rounds: the open rounds.
        tokens: a file with a token for each enrolled client. They are added to the store, which from then on takes samples only from
            enrolled clients and gateways. None: the tokens of the store, and any client if it has none.
        gateways: a file with the tokens of gateways, which name clients themselves; added likewise.
        key: the file of the collector's key, created if missing; it signs the store's agreements.
        addresses: where devices reach the service; by default the address that it listens at.
        replace_key: whether the key may replace another one that signed the store's agreements.
        seal: the file of the key that seals the store from now on, created if missing.
        least: hide the estimates of fewer samples, from now on and in every collection of the store; None: as the store says.
        shown: when the pages and /estimate show estimates: "always", "after" a visitor's own sample, or "never", from now on and in every
            collection of the store; None: as the store says.
        questions: a TOML or JSON file with what people are asked in words, for the one agreement that is passed. It stays what it is once
            somebody has answered.
        hosts: allowed host names; by default this machine's if it listens only to it, else any.
        origins: other sites whose pages may read and send.
        patience: seconds until a request must be complete.
        workers: the number of processes.
        listening: called with the address once requests are taken.

    Raises:
        DiscreetError: before anything is served, for settings that cannot be served.
    """
    check_count("workers", workers, most=_MOST_WORKERS)
    check_path("store", store)
    check_kind("host", host, str, "pass an address to listen at, such as 127.0.0.1")
    check_kind("port", port, int, "pass the number of a port, 0 for one that is free")
    check_flag("replace_key", replace_key)
    check_flag("groups", groups)
    for name, file in (("tokens", tokens), ("gateways", gateways), ("key", key), ("seal", seal)):
        if file is not None:
            check_path(name, file)
    if follows is not None:
        check_kind("follows", follows, str, "pass the id of an agreement, or its first digits")
    if shown is not None:
        check_choice("shown", shown, SHOWN)
    if listening is not None:
        check_callable("listening", listening, "pass a function of the address")
    addresses = check_texts("addresses", addresses, "pass addresses such as https://example.org")
    labelled_agreements = []
    for agreement in check_list("agreements", agreements, "pass Agreement.read(path) for each"):
        check_kind("agreement", agreement, Agreement, "pass Agreement.read(path) for each")
        labelled_agreements.append(labelled_agreement_coding_and_sampler(agreement)[0])
    settings = ServiceSettings(
        store=str(store),
        rounds=tuple(check_list("rounds", rounds, "pass the numbers of rounds")),
        seal=None if seal is None else str(seal),
        hosts=_allowed_host_names(host, check_texts("hosts", hosts, "pass the names of the service")),
        origins=tuple(check_texts("origins", origins, "pass origins such as https://example.org")),
        patience=patience,
    )
    settings.refuse_invalid_settings()
    for agreement in labelled_agreements:
        agreement.check_round(min(settings.rounds, default=1))
    if addresses:
        if key is None:
            raise DiscreetError("addresses are signed by a key, and none was given; name its file: --key FILE")
        normalise_addresses(addresses)
    if seal is None or os.path.lexists(seal):
        read_seal_file(seal)
    if groups:
        _refuse_unless_agreements_differ_in_purpose_alone(labelled_agreements)
    additions = _StoreAdditions(
        agreements=labelled_agreements,
        follows=follows,
        groups=groups,
        tokens=() if tokens is None else read_tokens(tokens),
        gateways=() if gateways is None else read_tokens(gateways),
        key=None if key is None else str(key),
        replace_key=replace_key,
        least=None if least is None else check_count("least", least, least=0, most=MOST_DRAWS),
        shown=shown,
        questions=None if questions is None else _read_questions_file(questions, labelled_agreements),
    )
    with _using_bound_socket(host, port) as bound_socket:
        address = _socket_url(bound_socket)
        additions.add_to_store(settings.store, settings.seal, addresses or (address,))
        bound_socket.listen(_BACKLOG)
        notify = (lambda: None) if listening is None else (lambda: listening(address))
        if workers == 1:
            settings.serve_until_stopped(bound_socket, notify)
        else:
            _WorkerProcesses(settings, bound_socket, workers, notify).serve_until_stopped()


def _refuse_new_seal_of_sealed_store(store: Store, seal: str) -> None:
    """Raise an error for a file that is to be created where the store is sealed: its own key is needed, not a new one."""
    try:
        store.seal_pool_if_key_given()
    except StoreError as error:
        raise StoreError(f"seal {seal} does not exist, and no new one is made: {error}") from None


def _read_questions_file(path: str | Path, agreements: Sequence[Agreement]) -> Questions:
    check_path("questions", path)
    if len(agreements) != 1:
        raise DiscreetError("questions are asked under one agreement; pass that one")
    return Questions.read(path, agreements[0])


class _Server(uvicorn.Server):
    """One process of the service."""

    def __init__(self, app: Any, listening: Callable[[], None], patience: float, *, alone: bool) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=type("LimitedConnection", (LimitedConnection,), {"patience": patience}),
                ws="none",
                lifespan="on",
                log_config=None,
                log_level=logging.CRITICAL,  # its messages about a request would name the sender
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                backlog=_BACKLOG,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=_STOPPING,
            )
        )
        self._listening, self._alone = listening, alone

    def serve_until_stopped(self, bound_socket: socket.socket) -> None:
        """Serve until stopped."""
        _raise_open_file_limit()
        self.run(sockets=[bound_socket])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and call `listening`."""
        asyncio.get_running_loop().set_exception_handler(_print_unhandled_loop_error)
        await super().startup(sockets=sockets)
        if self.started:
            self._listening()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at the first signal, and at once at the second; a clean stop is not a failure."""
        with _handling_stop_signals(self.handle_exit):
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle one of the two signals."""
        if self.should_exit and self._alone:
            os._exit(128 + sig)
        self.should_exit = True


class _WorkerProcesses:
    """Several processes on one socket, each replaced when it dies."""

    def __init__(
        self, settings: ServiceSettings, bound_socket: socket.socket, workers: int, listening: Callable[[], None]
    ) -> None:
        self._settings, self._bound, self._workers, self._listening = settings, bound_socket, workers, listening
        self._context = multiprocessing.get_context("spawn")
        self._stopping = threading.Event()
        self._running: list[SpawnProcess] = []

    def serve_until_stopped(self) -> None:
        """Keep the processes running until stopped."""
        with (
            _handling_stop_signals(self._handle_stop_signal),
            _using_fresh_metrics_folder(),
        ):
            ready = self._context.Semaphore(0)
            self._running = [self._start_worker(ready) for _ in range(self._workers)]
            for _ in self._running:
                while not (ready.acquire(timeout=0.1) or self._stopping.is_set()):
                    if any(not process.is_alive() for process in self._running):
                        self._signal_workers(signal.SIGTERM)
                        raise DiscreetError("a process of the service ended before it could serve")
            self._listening()
            while not self._stopping.wait(0.2):
                self._running = [
                    process if process.is_alive() else self._start_worker(ready) for process in self._running
                ]
            self._signal_workers(signal.SIGTERM)  # also a process that was started meanwhile
            for process in self._running:
                process.join()
        if any(process.exitcode not in (0, -signal.SIGTERM) for process in self._running):
            sys.exit(1)

    def _start_worker(self, ready: Any) -> SpawnProcess:
        process = self._context.Process(target=_run_worker, args=(self._settings, self._bound, ready))
        process.start()
        return process

    def _handle_stop_signal(self, sig: int, frame: FrameType | None) -> None:
        if self._stopping.is_set():
            self._signal_workers(getattr(signal, "SIGKILL", signal.SIGTERM))
            os._exit(128 + sig)
        self._stopping.set()
        self._signal_workers(signal.SIGTERM)

    def _signal_workers(self, sig: int) -> None:
        for process in self._running:
            with contextlib.suppress(ProcessLookupError):
                if process.pid is not None:
                    os.kill(process.pid, sig)


@contextlib.contextmanager
def _using_fresh_metrics_folder() -> Iterator[None]:
    """A folder for the metrics of several processes, in the environment that they inherit; at the end that is as it was."""
    earlier_folder = os.environ.get(METRICS_FOLDER)
    with tempfile.TemporaryDirectory(prefix="discreet-metrics-") as folder:
        os.environ[METRICS_FOLDER] = folder
        try:
            yield
        finally:
            if earlier_folder is None:
                del os.environ[METRICS_FOLDER]
            else:
                os.environ[METRICS_FOLDER] = earlier_folder


def _run_worker(settings: ServiceSettings, bound_socket: socket.socket, ready: Any) -> None:
    """Run one of several processes, which ends when the first one does."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def stop_when_first_process_ends() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop_when_first_process_ends, daemon=True).start()
    try:
        settings.serve_until_stopped(bound_socket, ready.release, alone=False)
    except DiscreetError as error:  # such as a missing store: the first process starts another one
        sys.exit(f"discreet: {error}")


def _print_unhandled_loop_error(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report an error outside of any request."""
    error = context.get("exception")
    if isinstance(error, Exception) and not isinstance(error, OSError):  # broken connections are normal
        print_fault_without_message(error)


@contextlib.contextmanager
def _handling_stop_signals(stop: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {sig: signal.signal(sig, stop) for sig in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for sig, handler in handlers.items():
            signal.signal(sig, handler)


def _refuse_unless_agreements_differ_in_purpose_alone(agreements: Sequence[Agreement]) -> None:
    """Raise an error for agreements that cannot be those of groups."""
    if len(agreements) < 2:
        raise DiscreetError("groups (--groups) are several agreements; name one file for each group")
    for other in agreements[1:]:
        if not agreements_differ_in_purpose_alone(agreements[0], other):
            raise DiscreetError(
                f"agreements {agreements[0].id[:12]} and {other.id[:12]} differ in more than their purpose, so they are not those of groups; "
                "agree on the same for each group, with a --purpose that names the group"
            )


def _add_agreements_to_store(
    store: Store, store_name: str, agreements: Sequence[Agreement], follows: str | None, *, groups: bool = False
) -> None:
    """Add agreements to a store, which then has at least one. `groups`: they make one collection."""
    collections = {
        stored_agreement.agreement.id: stored_agreement.collection for stored_agreement in store.agreements()
    }
    stored_ids = list(collections)
    if not (stored_ids or agreements):
        raise DiscreetError(
            f"{store_display_name(store_name)} keeps no agreement yet; name the file of one, as `discreet agree` writes it"
        )
    followed_id = None
    if follows is not None:
        followed_id = unique_id_with_prefix_or_none(stored_ids, follows)
        if followed_id is None:
            raise DiscreetError(
                f"follows = {follows!r} is not the id of an agreement in {store_display_name(store_name)}, nor {LEAST_PREFIX} or more of its "
                f"first digits; there are {', '.join(identity[:LEAST_PREFIX] for identity in stored_ids) or 'none'}"
            )
    closing_days = {stored_agreement.agreement.id: stored_agreement.closed for stored_agreement in store.agreements()}
    for agreement in agreements:
        if followed_id is not None and closing_days[followed_id] is not None and agreement.id not in stored_ids:
            raise DiscreetError(
                f"agreement {followed_id[:LEAST_PREFIX]}, which is to be followed, was closed on "
                f"{closing_days[followed_id]}: nothing would be counted; begin another collection, without --follows"
            )
        source_ids = [identity for identity in agreement.learned_from if identity in stored_ids]
        outside_ids = [
            identity
            for identity in source_ids
            if followed_id is None or collections[identity] != collections[followed_id]
        ]
        if outside_ids and agreement.id not in stored_ids:
            raise DiscreetError(
                f"agreement {agreement.id[:LEAST_PREFIX]} was learned from samples under {outside_ids[0][:LEAST_PREFIX]}, which "
                f"{store_display_name(store_name)} keeps: a client with a sample in both spends twice; give --follows "
                f"{outside_ids[0][:LEAST_PREFIX]}"
            )
        store.add(agreement, follows=agreements[0].id if groups and agreement.id != agreements[0].id else followed_id)


@contextlib.contextmanager
def _using_bound_socket(host: str, port: int) -> Iterator[socket.socket]:
    """A socket bound to that address."""
    if not 0 <= port <= _LARGEST_PORT:
        raise DiscreetError(f"port = {port} is not in [0, {_LARGEST_PORT}]")
    try:
        family, kind, protocol, _, socket_address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError):
        raise DiscreetError(f"host = {host!r} is no address of this machine") from None
    with socket.socket(family, kind, protocol) as bound_socket:
        bound_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound_socket.bind(socket_address)
        except OSError as error:
            raise DiscreetError(
                f"host = {host!r}, port = {port} cannot be used ({error.strerror}); choose others, or --port 0 for "
                f"a free one"
            ) from None
        yield bound_socket


def _socket_url(bound_socket: socket.socket) -> str:
    host, port = bound_socket.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _allowed_host_names(host: str, hosts: Sequence[str]) -> tuple[str, ...] | None:
    """The allowed host names: the given ones and this machine's. Without any: this machine's if it alone is listened to, else None."""
    if hosts:
        return (*LOCAL, *hosts)
    return LOCAL if is_host_this_machine(host) else None


def _raise_open_file_limit() -> None:
    """Raise the limit of open files: every connection needs one."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MOST_FILES if hard_limit == resource.RLIM_INFINITY else min(hard_limit, _MOST_FILES)
    if soft_limit != resource.RLIM_INFINITY and soft_limit < limit:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard_limit))
