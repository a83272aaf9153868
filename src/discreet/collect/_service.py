"""`service`: the collector as an ASGI application, with its paths (`discreet.client._protocol`), pages and metrics.

`Metrics` counts requests, their durations and the length of the queue for Prometheus, and nothing about clients. It omits the creation time
of counters (`..._created`), which is the moment of the first request. With several processes, each writes its numbers to the folder that
`PROMETHEUS_MULTIPROC_DIR` names, and any of them adds them up.
"""

import asyncio
import json
import os
import secrets
from collections import Counter as Tally
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from discreet.client import (
    AGREEMENT,
    ARROW,
    CHANGE,
    COLLECTION,
    ESTIMATE,
    GROUPS,
    HEALTH,
    JSON,
    METRICS,
    POOLED,
    SAMPLES,
    WEIGHTS,
    read_collector_key,
)
from discreet.collect._catalogue import (
    USUAL_CONFIDENCE,
    Catalogue,
    CollectedAgreement,
    EnrolmentCache,
    EstimateRequest,
    Estimates,
    gateway_id_from_authorization,
    sign_agreements,
    survey_columns_to_group_by,
)
from discreet.collect._counting import Arrival, Verdict, token_digest
from discreet.collect._pages import add_tokens_to_store, page_routes
from discreet.collect._requests import (
    FAILED,
    PATIENCE,
    RequestGuard,
    RequestLimits,
    RequestProblem,
    bad_request_problem,
    print_fault_without_message,
    unavailable_problem,
)
from discreet.collect._results import json_document_of_hidden_estimate
from discreet.collect._samples import SampleRequest, StoreWriter, UnknownToken, parse_arrow_samples, parse_json_samples
from discreet.collect._store import AFTER, ALWAYS, Store, require_store_object
from discreet.errors import StoreError

METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
MEDIA_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_TOGETHER = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000)


class _UndatedRegistry(CollectorRegistry):
    """A registry without creation times of counters."""

    def collect(self) -> Iterable[Metric]:
        """All metrics."""
        for metric in super().collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


class Metrics:
    """The metrics of one service."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        self._registry = _UndatedRegistry()
        self._requests = Counter(
            "discreet_requests", "Requests by path and status.", ["path", "status"], registry=self._registry
        )
        self._answers: dict[tuple[str, int], Counter] = {}
        self._sample_counter = Counter(
            "discreet_samples", "Samples by what became of them.", ["verdict"], registry=self._registry
        )
        self._by_verdict = {verdict: self._sample_counter.labels(verdict.value) for verdict in Verdict}
        self._together = Histogram(
            "discreet_transaction_samples", "Samples in one transaction.", buckets=_TOGETHER, registry=self._registry
        )
        self._estimate_seconds = Histogram(
            "discreet_estimate_seconds", "Time to compute an estimate.", buckets=_SECONDS, registry=self._registry
        )
        self._bugs = Counter(
            "discreet_bugs", "Requests that failed by a fault of the service.", registry=self._registry
        )
        queue = Gauge(
            "discreet_waiting_samples",
            "Samples that wait to be written.",
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        if METRICS_FOLDER not in os.environ:
            queue.set_function(waiting)  # processes cannot ask each other
            ProcessCollector(registry=self._registry)

    def count_answer(self, path: str, status: int) -> None:
        """Count an answered request. `path`: one of ours."""
        known = self._answers.get((path, status))
        if known is None:
            known = self._answers[path, status] = self._requests.labels(path, str(status))
        known.inc()

    def count_transaction(self, verdicts: list[Verdict]) -> None:
        """Count a transaction that is on disk."""
        self._together.observe(len(verdicts))
        for verdict, many in Tally(verdicts).items():
            self._by_verdict[verdict].inc(many)

    def record_estimate_seconds(self, seconds: float) -> None:
        """Record the duration of an estimate."""
        self._estimate_seconds.observe(seconds)

    def count_unexpected_error(self) -> None:
        """Count an unexpected error."""
        self._bugs.inc()

    def prometheus_text(self) -> bytes:
        """All metrics in Prometheus' format."""
        if METRICS_FOLDER not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        added_up: Any = MultiProcessCollector  # without types
        added_up(together)
        return generate_latest(together)


QUESTIONS = "/questions"
_READERS: dict[str, Callable[[bytes], SampleRequest]] = {JSON: parse_json_samples, ARROW: parse_arrow_samples}
_SPOKEN = "this client has spoken in this round; its first sample stays"
_CLOSED = "this collection is closed; nothing was counted"
_LONGEST_PHRASE = HTTPStatus.CONFLICT.phrase  # the longest phrase of our status lines
_SMALL = 1 << 14  # bytes of a body; a larger one is read in a thread


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
    """The collector as an application for any ASGI server.

    It takes samples of every agreement of the store. Limits on connections and slow headers belong to the server: `serve` has them.

    Args:
        store: from `open_store`, with its agreements added.
        rounds: the open rounds.
        tokens: one for each enrolled client, each the name of its client. They are added to the store, which from then on takes samples
            only from enrolled clients and gateways. None: the tokens of the store, and any client if it has none.
        gateways: tokens of gateways, which name clients themselves; added likewise.
        hosts: allowed host names, against sites whose name leads to this machine; None: any.
        origins: other sites whose pages may read and send, such as "https://example.org".
        patience: seconds until the body of a request must be complete.
        key: the file of the collector's key, which signs the store's agreements for these addresses. None: signatures stay as they are.
        addresses: where devices reach the service, such as "https://example.org"; needed with a key.
        replace_key: whether the key may replace another one that signed the agreements.

    Returns:
        An ASGI application.

    Raises:
        DiscreetError: for agreements whose samples cannot be counted, invalid origins, and a key that is not the store's.
    """
    require_store_object(store)
    if tokens is not None or gateways is not None:
        add_tokens_to_store(store, () if tokens is None else tokens, () if gateways is None else gateways)
    if key is not None:
        sign_agreements(store, read_collector_key(key), addresses, replace_key=replace_key)
    return _Service(store, rounds, patience).make_asgi_app(hosts, origins)


class _Service:
    def __init__(self, store: Store, rounds: Iterable[int], patience: float) -> None:
        self._store, self._enrolment = store, EnrolmentCache(store)
        self._catalogue = Catalogue(store, rounds)
        self._version = 0
        self._metrics = Metrics(lambda: self._writer.waiting_sample_count)
        self._writer = StoreWriter(store, wrote=self._count_transaction, failed=self._count_and_print_unexpected_error)
        self._estimates = Estimates(store, lambda: self._version, self._metrics.record_estimate_seconds)
        self._limits = RequestLimits(patience)
        # one at a time: a hostile body may unpack to many times its size
        self._reading = ThreadPoolExecutor(1, "reading")

    def make_asgi_app(self, hosts: Sequence[str] | None, origins: Iterable[str]) -> ASGIApp:
        routes = [
            Route(SAMPLES, self._post_samples, methods=["POST"]),
            Route(ESTIMATE, self._get_estimate),
            Route(GROUPS, self._get_estimates_of_groups),
            Route(CHANGE, self._get_estimate_of_change),
            Route(POOLED, self._get_estimate_of_stages),
            Route(COLLECTION, self._get_collection),
            Route(AGREEMENT, self._get_agreement),
            Route(WEIGHTS, self._get_weights),
            Route(QUESTIONS, self._get_questions),
            Route(HEALTH, self._get_health),
            Route(METRICS, self._get_metrics),
            *page_routes(),
        ]
        self._paths = {route.path for route in routes}
        inner = Starlette(
            routes=routes,
            lifespan=self._close_writer_at_shutdown,
            exception_handlers={
                RequestProblem: _refusal_response,
                HTTPException: _unknown_path_or_method_response,
                StoreError: _store_failure_response,
                Exception: _failure_response,
            },
        )
        inner.router.redirect_slashes = False
        return RequestGuard(
            inner,
            hosts=hosts,
            origins=origins,
            answered=self._count_answer,
            failed=self._count_and_print_unexpected_error,
            direct={("POST", SAMPLES): self._answer_samples_request},
        )

    @asynccontextmanager
    async def _close_writer_at_shutdown(self, _: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.get_running_loop().run_in_executor(None, self._writer.close)
        self._reading.shutdown()

    def _count_answer(self, scope: Scope, status: int) -> None:
        path = scope["path"]
        self._metrics.count_answer(path if path in self._paths else "other", status)

    def _count_transaction(self, verdicts: list[Verdict]) -> None:
        self._version += 1
        self._metrics.count_transaction(verdicts)

    def _count_and_print_unexpected_error(self, error: BaseException) -> None:
        self._metrics.count_unexpected_error()
        print_fault_without_message(error)

    async def _answer_samples_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await self._post_samples(Request(scope, receive)))(scope, receive, send)

    async def _post_samples(self, request: Request) -> Response:
        read = _body_parser_for(request)
        authorization = request.headers.getlist("authorization")
        gateway_id_from_authorization(
            await self._enrolment.current_enrolment(), authorization
        )  # before the body is read
        async with self._limits.using_body_within_limits(request) as body:
            enrolment = await self._enrolment.current_enrolment()  # a token may be revoked while its body arrives
            gateway = gateway_id_from_authorization(enrolment, authorization)
            sent = await self._run_outside_loop_if_large(len(body), read, body)
            collected = await self._catalogue.find_agreement_by_id(sent.agreement)
            arrivals = await self._run_outside_loop_if_large(
                len(body), _make_arrivals_of_request, sent, collected, gateway
            )
            asked = enrolment.needed and gateway is None
            tokens = [token_digest(client) for client in sent.clients] if asked else []
            try:
                verdicts = await self._writer.write_samples(collected.id, sent.round, arrivals, tokens)
            except UnknownToken as unknown:
                place = sent.describe_field(unknown.place, "client")
                raise RequestProblem(403, f"{place} is not one of the tokens of this collection") from None
        ticket = collected.kept.ticket if sent.alone and collected.kept.shown == AFTER else ""
        return _response_with_verdicts(verdicts, alone=sent.alone, ticket=ticket)

    async def _run_outside_loop_if_large(self, size: int, function: Callable[..., Any], *arguments: Any) -> Any:
        if size <= _SMALL:
            return function(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self._reading, function, *arguments)

    async def _get_estimate(self, request: Request) -> Response:
        asked = _read_query_parameters(request, "agreement", "round", "confidence")
        collected = await self._catalogue.find_agreement_by_prefix(asked.get("agreement"))
        number = _requested_round(asked, collected)
        if _may_see_estimates(request, collected):
            return await self._answer_estimate(request, asked, "estimate", [(collected, number)])
        days = await asyncio.get_running_loop().run_in_executor(
            None, self._store.sample_counts_by_day, collected.id, number
        )
        return _json_response(json_document_of_hidden_estimate(collected.kept, collected.sampler, days, number))

    async def _get_estimates_of_groups(self, request: Request) -> Response:
        asked = _read_query_parameters(request, "agreement", "round", "confidence", "by")
        collected = await self._catalogue.find_agreement_by_prefix(asked.get("agreement"))
        number, by = _requested_round(asked, collected), asked.get("by")
        if by is None:
            sides = [(each, number) for each in self._catalogue.agreements_of_public_groups(collected)]
            return await self._answer_estimate(request, asked, "groups", sides)
        if by not in survey_columns_to_group_by(collected.agreement):
            raise bad_request_problem(
                "by is not a column of the survey that a question asks for together with another one"
            )
        return await self._answer_estimate(request, asked, "within", [(collected, number)], by)

    async def _get_estimate_of_stages(self, request: Request) -> Response:
        asked = _read_query_parameters(request, "agreement", "round", "confidence")
        collected = await self._catalogue.find_agreement_by_prefix(asked.get("agreement"))
        number = _requested_round(asked, collected)
        stages = [each for each in self._catalogue.agreements_of_stages(collected) if number <= each.agreement.rounds]
        if not stages:
            raise RequestProblem(404, "the collection has no stages that can be estimated together")
        return await self._answer_estimate(request, asked, "pooled", [(each, number) for each in stages])

    async def _get_estimate_of_change(self, request: Request) -> Response:
        asked = _read_query_parameters(request, "agreement", "round", "confidence", "from")
        collected = await self._catalogue.find_agreement_by_prefix(asked.get("agreement"))
        later = _requested_round(asked, collected)
        if later == 1 and "from" not in asked:
            raise bad_request_problem("there is no round before round 1; name another one by round")
        earlier = _requested_round({"from": asked.get("from", str(later - 1))}, collected, "from")
        if earlier == later:
            raise bad_request_problem("from and round are the same round; a change is that from one to another")
        return await self._answer_estimate(request, asked, "change", [(collected, earlier), (collected, later)])

    async def _answer_estimate(
        self,
        request: Request,
        asked: dict[str, str],
        kind: str,
        sides: list[tuple[CollectedAgreement, int]],
        by: str = "",
    ) -> Response:
        if not all(_may_see_estimates(request, collected) for collected, _ in sides):
            raise RequestProblem(
                403, "the results of this collection are not shown, or only to people who have taken part"
            )
        confidence = asked.get("confidence", USUAL_CONFIDENCE)
        told = await self._estimates.current_estimate(EstimateRequest(kind, tuple(sides), confidence, by))
        return _response_with_entity_tag(request, told.body, told.tag, JSON)

    async def _get_collection(self, request: Request) -> Response:
        collected = await self._catalogue.find_agreement_by_prefix(
            _read_query_parameters(request, "agreement").get("agreement")
        )
        enrolment = await self._enrolment.current_enrolment()
        own = self._catalogue.agreements_of_collection(collected.kept.collection)
        newest = {each.kept.collection: each for each in self._catalogue.all_agreements}
        return _json_response(
            {
                "collection": collected.kept.collection,
                "agreement": own[-1].id,
                "round": own[-1].newest_round,
                "enrolment": enrolment.needed,
                "closed": collected.kept.closed,
                "shown": collected.kept.shown,
                "agreements": [_offered_agreement_as_json_value(each) for each in own],
                "groups": [each.id for each in self._catalogue.agreements_of_public_groups(collected)],
                "stages": [each.id for each in self._catalogue.agreements_of_stages(collected)],
                "within": survey_columns_to_group_by(collected.agreement),
                "beside": [
                    {"agreement": each.id, "purpose": each.agreement.purpose}
                    for each in newest.values()
                    if each.kept.collection != collected.kept.collection
                ],
            }
        )

    async def _get_agreement(self, request: Request) -> Response:
        collected = await self._catalogue.find_agreement_by_prefix(
            _read_query_parameters(request, "agreement").get("agreement")
        )
        return _response_with_entity_tag(request, collected.file_bytes, f'"{collected.id}"', JSON)

    async def _get_weights(self, request: Request) -> Response:
        collected = await self._catalogue.find_agreement_by_prefix(
            _read_query_parameters(request, "agreement").get("agreement")
        )
        if collected.weights_file_bytes is None:
            raise RequestProblem(404, "the agreement has no weights beside its own text")
        return _response_with_entity_tag(
            request, collected.weights_file_bytes, f'"{collected.id}"', "application/octet-stream"
        )

    async def _get_questions(self, request: Request) -> Response:
        collected = await self._catalogue.find_agreement_by_prefix(
            _read_query_parameters(request, "agreement").get("agreement")
        )
        if collected.kept.questions is None:
            raise RequestProblem(404, "no questions were written for this agreement")
        return _response_with_entity_tag(
            request, collected.kept.questions.encode(), f'"{collected.questions_digest}"', JSON
        )

    async def _get_health(self, request: Request) -> Response:
        _read_query_parameters(request)
        collected = await self._catalogue.find_agreement_by_prefix(None)
        await asyncio.get_running_loop().run_in_executor(
            None, self._store.sample_counts_by_day, collected.id, collected.newest_round
        )
        return _json_response({"status": "ok"})

    async def _get_metrics(self, request: Request) -> Response:
        _read_query_parameters(request)
        text = await asyncio.get_running_loop().run_in_executor(None, self._metrics.prometheus_text)
        return Response(text, headers={"Content-Type": MEDIA_TYPE, "Cache-Control": "no-store"})


def _make_arrivals_of_request(sent: SampleRequest, collected: CollectedAgreement, gateway: str | None) -> list[Arrival]:
    collected.refuse_closed_round(sent.round)
    return collected.make_arrivals(
        sent.round, sent.clients, sent.keys, sent.outcome_numbers(collected.sample_reader), gateway
    )


def _response_with_verdicts(verdicts: Sequence[Verdict], *, alone: bool, ticket: str = "") -> Response:
    """The answer to samples, padded with spaces so that its length is the same for every result.

    The longest answer to several samples is that all are refused; to one sample, it is a 409. The status line of a 409 is longer by as much
    as its body is shorter. All answers to a sample have the same number of bytes, including headers; those of a closed collection too.
    `ticket`: for whoever has a sample in the collection, where that lets them see estimates.
    """
    refused = [place for place, verdict in enumerate(verdicts) if verdict is Verdict.SPOKEN]
    counted = sum(verdict is Verdict.COUNTED for verdict in verdicts)
    late = [place for place, verdict in enumerate(verdicts) if verdict is Verdict.CLOSED]
    again = len(verdicts) - counted - len(refused) - len(late)
    found: dict[str, Any] = {"counted": counted, "again": again, "refused": refused}
    status = HTTPStatus.OK
    if late:
        status = HTTPStatus.GONE
        found = {"error": _CLOSED, **found, **({} if alone else {"closed": late})}
    elif alone and refused:
        status = HTTPStatus.CONFLICT
        found = {"error": _SPOKEN, **found}
    given = {"ticket": ticket} if ticket else {}
    if status == HTTPStatus.OK:
        found |= given
    most = dict.fromkeys(("counted", "again"), len(verdicts)) | {"refused": list(range(len(verdicts)))}
    longest = len(json.dumps({"error": _SPOKEN, **most, **given})) + len(_LONGEST_PHRASE) - len(status.phrase)
    body = json.dumps(found).ljust(longest).encode()
    return Response(body, status_code=status, media_type=JSON, headers={"Cache-Control": "no-store"})


def _may_see_estimates(request: Request, collected: CollectedAgreement) -> bool:
    """Whether estimates are shown to whoever asks: to everybody, to the holders of the collection's one ticket, or to nobody."""
    kept = collected.kept
    given = request.headers.get("authorization", "")
    holds = bool(kept.ticket) and secrets.compare_digest(given.encode(), f"Bearer {kept.ticket}".encode())
    return kept.shown == ALWAYS or (kept.shown == AFTER and holds)


def _body_parser_for(request: Request) -> Callable[[bytes], SampleRequest]:
    kinds = request.headers.getlist("content-type")
    named = kinds[0].partition(";")[0].strip().lower() if len(kinds) == 1 else ""
    if named not in _READERS:
        raise RequestProblem(415, f"the content type is not {' or '.join(_READERS)}")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise RequestProblem(415, "the body is compressed; send it as it is")
    return _READERS[named]


def _read_query_parameters(request: Request, *known: str) -> dict[str, str]:
    """The query's parameters; an error for an unknown or repeated one."""
    pairs = request.query_params.multi_items()
    found = dict(pairs)
    if len(found) != len(pairs) or not found.keys() <= set(known):
        said = f"those there are: {', '.join(known)}" if known else "there are none here"
        raise bad_request_problem(f"the query has a parameter that is not known, or one twice; {said}")
    return found


def _requested_round(asked: dict[str, str], collected: CollectedAgreement, name: str = "round") -> int:
    """The requested round; by default the newest open one."""
    said = asked.get(name, str(collected.newest_round))
    if not (said.isascii() and said.isdigit() and len(said) < 19 and 1 <= int(said) <= collected.agreement.rounds):
        raise bad_request_problem(f"{name} is not a whole number from 1 to {collected.agreement.rounds}")
    return int(said)


def _offered_agreement_as_json_value(each: CollectedAgreement) -> dict[str, Any]:
    agreed = each.agreement
    about: dict[str, Any] = {"agreement": each.id, "follows": each.kept.follows, "rounds": agreed.rounds}
    about["open"] = [] if each.kept.closed else list(each.rounds)
    signed = each.kept.signed
    about |= {"purpose": agreed.purpose, "signed": None if signed is None else signed.document}
    return {**about, "questions": each.questions_digest}


def _json_response(found: Any) -> Response:
    body = json.dumps(found, allow_nan=False).encode()
    return Response(body, media_type=JSON, headers={"Cache-Control": "no-store"})


def _response_with_entity_tag(request: Request, body: bytes, tag: str, media_type: str) -> Response:
    """An answer that is not sent again to a client that has it."""
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if tag in (part.strip() for part in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media_type, headers=headers)


async def _refusal_response(_: Request, problem: Any) -> Response:
    refused: Response = problem.response
    return refused


async def _unknown_path_or_method_response(_: Request, error: Any) -> Response:
    """The router's own error: an unknown path or method."""
    allowed = (error.headers or {}).get("Allow")
    sentence = "there is nothing at this path" if allowed is None else f"this path takes {allowed}"
    return RequestProblem(error.status_code, sentence, headers=error.headers).response


async def _failure_response(_: Request, __: Any) -> Response:
    """The answer to an unexpected error, which the guard reports."""
    return FAILED.response


async def _store_failure_response(_: Request, __: Any) -> Response:
    return unavailable_problem("the store cannot be read now").response
