"""The service as an ASGI application: what each path answers (`discreet._protocol`)."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet._protocol import (
    AGREEMENT,
    ARROW,
    COLLECTION,
    ESTIMATE,
    HEALTH,
    JSON,
    METRICS,
    SAMPLES,
    WEIGHTS,
    read_collector_key,
)
from discreet.collect._catalogue import Catalogue, CollectedAgreement
from discreet.collect._enrolment import EnrolmentCache, enrol_tokens, gateway_of, token_digest
from discreet.collect._estimates import USUAL_CONFIDENCE, Estimates
from discreet.collect._guarding import FAILED, Guard, report
from discreet.collect._limits import PATIENCE, RequestLimits
from discreet.collect._metrics import MEDIA_TYPE, Metrics
from discreet.collect._pages import page_routes
from discreet.collect._problems import RequestProblem, bad_request, unavailable
from discreet.collect._reading import SampleRequest, from_arrow, from_json
from discreet.collect._signing import sign_agreements
from discreet.collect._store import Arrival, Store, Verdict
from discreet.collect._writing import StoreWriter, UnknownToken
from discreet.errors import StoreError

_READERS: dict[str, Callable[[bytes], SampleRequest]] = {JSON: from_json, ARROW: from_arrow}
_SPOKEN = "this client has spoken in this round; its first sample stays"
_LONGEST_PHRASE = HTTPStatus.CONFLICT.phrase  # of a status line
_SMALL = 1 << 14  # bytes of a body that is read at once; a larger one is read in a thread, so that others need not wait


def service(
    store: Store,
    *,
    rounds: Iterable[int] = (1,),
    tokens: Iterable[str] | None = None,
    gateways: Iterable[str] | None = None,
    hosts: Sequence[str] | None = None,
    origins: Iterable[str] = (),
    patience: float = PATIENCE,
    key: str | Path | None = None,
    addresses: Sequence[str] = (),
    replace_key: bool = False,
) -> ASGIApp:
    """The collector as an application that any ASGI server can serve.

    It takes samples of every agreement of the store. Limits on connections and on slow headers are the server's: `serve` has them.

    Args:
        store: where samples are kept, of `open_store`; its agreements were added before.
        rounds: those in which samples are taken.
        tokens: one for each client that may speak, each the name of its client. They are added to the store, which takes samples from
            enrolled clients and gateways alone from then on; None: those that the store holds, and anybody if it holds none.
        gateways: tokens of gateways, which name clients themselves; added likewise.
        hosts: names under which the service may be called, against sites whose name leads to this machine; None: any.
        origins: of other sites whose pages may read and send, such as "https://example.org".
        patience: seconds until the body of a request has to be whole.
        key: the file of the collector's key; the store's agreements are signed by it, for these addresses. None: as they are there.
        addresses: where devices reach the service, such as "https://example.org"; needed with a key.
        replace_key: whether the key may take the place of another one that agreements are signed by.

    Returns:
        An ASGI application.

    Raises:
        DiscreetError: for agreements whose samples cannot be counted, origins that are none, and a key that is not the store's.
    """
    if tokens is not None or gateways is not None:
        enrol_tokens(store, tokens or (), gateways or ())
    if key is not None:
        sign_agreements(store, read_collector_key(key), addresses, replace_key=replace_key)
    return _Service(store, rounds, patience).app(hosts, origins)


class _Service:
    def __init__(self, store: Store, rounds: Iterable[int], patience: float) -> None:
        self._store, self._door = store, EnrolmentCache(store)
        self._catalogue = Catalogue(store, rounds)
        self._version = 0
        self._metrics = Metrics(lambda: self._writer.waiting)
        self._writer = StoreWriter(store, wrote=self._count_transaction, failed=self._report_failure)
        self._estimates = Estimates(store, lambda: self._version, self._metrics.observe_estimate)
        self._room = RequestLimits(patience)
        self._reading = ThreadPoolExecutor(1, "reading")  # one at a time: a hostile body unfolds to many times its size

    def app(self, hosts: Sequence[str] | None, origins: Iterable[str]) -> ASGIApp:
        routes = [
            Route(SAMPLES, self._samples, methods=["POST"]),
            Route(ESTIMATE, self._estimate),
            Route(COLLECTION, self._collection),
            Route(AGREEMENT, self._agreement),
            Route(WEIGHTS, self._weights),
            Route(HEALTH, self._health),
            Route(METRICS, self._metrics_text),
            *page_routes(),
        ]
        self._paths = {route.path for route in routes}
        inner = Starlette(
            routes=routes,
            lifespan=self._lifespan,
            exception_handlers={
                RequestProblem: _refusal,
                HTTPException: _missing,
                StoreError: _store_gone,
                Exception: _fault,
            },
        )
        inner.router.redirect_slashes = False
        return Guard(
            inner,
            hosts=hosts,
            origins=origins,
            answered=self._count_answer,
            failed=self._report_failure,
            direct={("POST", SAMPLES): self._answer_samples},
        )

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.get_running_loop().run_in_executor(None, self._writer.close)
        self._reading.shutdown()

    def _count_answer(self, scope: Scope, status: int) -> None:
        path = scope["path"]
        self._metrics.count_answer(path if path in self._paths else "other", status)

    def _count_transaction(self, verdicts: list[Verdict]) -> None:
        self._version += 1
        self._metrics.count_transaction(verdicts)

    def _report_failure(self, error: BaseException) -> None:
        self._metrics.count_failure()
        report(error)

    async def _answer_samples(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self._samples(Request(scope, receive)))(scope, receive, send)

    async def _samples(self, request: Request) -> Response:
        read = _reader(request)
        enrolment = await self._door.enrolment()
        gateway = gateway_of(enrolment, request.headers.getlist("authorization"))
        async with self._room.body(request) as body:
            sent = await self._off_the_loop(len(body), read, body)
            collected = await self._catalogue.of(sent.agreement)
            arrivals = await self._off_the_loop(len(body), _arrivals, sent, collected, gateway)
            asked = enrolment.needed and gateway is None
            tokens = [token_digest(client) for client in sent.clients] if asked else []
            try:
                verdicts = await self._writer.take(collected.id, sent.round, arrivals, tokens)
            except UnknownToken as unknown:
                place = sent.place(unknown.place, "client")
                raise RequestProblem(403, f"{place} is not one of the tokens of this collection") from None
        return _verdict_response(verdicts, alone=sent.alone)

    async def _off_the_loop(self, size: int, function: Callable[..., Any], *arguments: Any) -> Any:
        if size <= _SMALL:
            return function(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self._reading, function, *arguments)

    async def _estimate(self, request: Request) -> Response:
        asked = _query(request, "agreement", "round", "confidence")
        collected = await self._catalogue.find_agreement(asked.get("agreement"))
        told = await self._estimates.of(collected, _round(asked, collected), asked.get("confidence", USUAL_CONFIDENCE))
        return _tagged_response(request, told.body, told.tag, JSON)

    async def _collection(self, request: Request) -> Response:
        collected = await self._catalogue.find_agreement(_query(request, "agreement").get("agreement"))
        enrolment = await self._door.enrolment()
        own = self._catalogue.following(collected.kept.collection)
        newest = {each.kept.collection: each for each in self._catalogue.all}
        return _json(
            {
                "collection": collected.kept.collection,
                "agreement": own[-1].id,
                "round": own[-1].round,
                "enrolment": enrolment.needed,
                "agreements": [_agreement_summary(each) for each in own],
                "beside": [
                    {"agreement": each.id, "purpose": each.agreement.purpose}
                    for each in newest.values()
                    if each.kept.collection != collected.kept.collection
                ],
            }
        )

    async def _agreement(self, request: Request) -> Response:
        collected = await self._catalogue.find_agreement(_query(request, "agreement").get("agreement"))
        return _tagged_response(request, collected.text, f'"{collected.id}"', JSON)

    async def _weights(self, request: Request) -> Response:
        collected = await self._catalogue.find_agreement(_query(request, "agreement").get("agreement"))
        if collected.weights is None:
            raise RequestProblem(404, "the agreement has no weights beside its own text")
        return _tagged_response(request, collected.weights, f'"{collected.id}"', "application/octet-stream")

    async def _health(self, request: Request) -> Response:
        _query(request)
        collected = await self._catalogue.find_agreement(None)
        await asyncio.get_running_loop().run_in_executor(None, self._store.by_day, collected.id, collected.round)
        return _json({"status": "ok"})

    async def _metrics_text(self, request: Request) -> Response:
        _query(request)
        text = await asyncio.get_running_loop().run_in_executor(None, self._metrics.text)
        return Response(text, headers={"Content-Type": MEDIA_TYPE, "Cache-Control": "no-store"})


def _arrivals(sent: SampleRequest, collected: CollectedAgreement, gateway: str | None) -> list[Arrival]:
    collected.check_open(sent.round)
    return collected.arrivals(sent.round, sent.clients, sent.keys, sent.outcomes(collected.outcomes), gateway)


def _verdict_response(verdicts: Sequence[Verdict], *, alone: bool) -> Response:
    """What became of samples. Whoever watches the line sees as many bytes whatever it was: spaces make up for the rest.

    The longest answer to so many samples refuses all of them; to one sample, it is a 409. Its status line is longer as well, by as much as
    its body has to be shorter: all three answers to a sample have the same number of bytes, headers and all.
    """
    refused = [place for place, verdict in enumerate(verdicts) if verdict is Verdict.SPOKEN]
    counted = sum(verdict is Verdict.COUNTED for verdict in verdicts)
    found: dict[str, Any] = {"counted": counted, "again": len(verdicts) - counted - len(refused), "refused": refused}
    status = HTTPStatus.OK
    if alone and refused:
        status = HTTPStatus.CONFLICT
        found = {"error": _SPOKEN, **found}
    most = dict.fromkeys(("counted", "again"), len(verdicts)) | {"refused": list(range(len(verdicts)))}
    longest = len(json.dumps({"error": _SPOKEN, **most})) + len(_LONGEST_PHRASE) - len(status.phrase)
    body = json.dumps(found).ljust(longest).encode()
    return Response(body, status_code=status, media_type=JSON, headers={"Cache-Control": "no-store"})


def _reader(request: Request) -> Callable[[bytes], SampleRequest]:
    kinds = request.headers.getlist("content-type")
    named = kinds[0].partition(";")[0].strip().lower() if len(kinds) == 1 else ""
    if named not in _READERS:
        raise RequestProblem(415, f"the content type is not {' or '.join(_READERS)}")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise RequestProblem(415, "the body is compressed; send it as it is")
    return _READERS[named]


def _query(request: Request, *known: str) -> dict[str, str]:
    """The query's parameters, each of which is known and comes once."""
    pairs = request.query_params.multi_items()
    found = dict(pairs)
    if len(found) != len(pairs) or not found.keys() <= set(known):
        said = f"those there are: {', '.join(known)}" if known else "there are none here"
        raise bad_request(f"the query has a parameter that is not known, or one twice; {said}")
    return found


def _round(asked: dict[str, str], collected: CollectedAgreement) -> int:
    """The round that is asked for; by default the newest that is open."""
    said = asked.get("round", str(collected.round))
    if not (said.isascii() and said.isdigit() and len(said) < 19 and 1 <= int(said) <= collected.agreement.rounds):
        raise bad_request(f"round is not a whole number from 1 to {collected.agreement.rounds}")
    return int(said)


def _agreement_summary(each: CollectedAgreement) -> dict[str, Any]:
    agreed = each.agreement
    about = {"agreement": each.id, "follows": each.kept.follows, "rounds": agreed.rounds, "open": list(each.rounds)}
    signed = each.kept.signed
    return {**about, "purpose": agreed.purpose, "signed": None if signed is None else signed.document}


def _json(found: Any) -> Response:
    body = json.dumps(found, allow_nan=False).encode()
    return Response(body, media_type=JSON, headers={"Cache-Control": "no-store"})


def _tagged_response(request: Request, body: bytes, tag: str, media_type: str) -> Response:
    """An answer that need not be sent again to who holds it."""
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if tag in (part.strip() for part in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media_type, headers=headers)


async def _refusal(_: Request, problem: Any) -> Response:
    refused: Response = problem.answer
    return refused


async def _missing(_: Request, error: Any) -> Response:
    """What the router itself refuses: a path or a method."""
    allowed = (error.headers or {}).get("Allow")
    sentence = "there is nothing at this path" if allowed is None else f"this path takes {allowed}"
    return RequestProblem(error.status_code, sentence, headers=error.headers).answer


async def _fault(_: Request, __: Any) -> Response:
    """An error of ours, which the guard reports."""
    return FAILED.answer


async def _store_gone(_: Request, __: Any) -> Response:
    return unavailable("the store cannot be read now").answer
