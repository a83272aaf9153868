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
        counter = self._answers.get((path, status))
        if counter is None:
            counter = self._answers[path, status] = self._requests.labels(path, str(status))
        counter.inc()

    def count_transaction(self, verdicts: list[Verdict]) -> None:
        """Count a transaction that is on disk."""
        self._together.observe(len(verdicts))
        for verdict, count in Tally(verdicts).items():
            self._by_verdict[verdict].inc(count)

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
        registry = CollectorRegistry()
        untyped_collector: Any = MultiProcessCollector  # without types
        untyped_collector(registry)
        return generate_latest(registry)


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
            lifespan=self._close_writer_after_service,
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
    async def _close_writer_after_service(self, _: Starlette) -> AsyncIterator[None]:
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
        parse_body = _body_parser_for(request)
        authorization = request.headers.getlist("authorization")
        # before the body is read
        gateway_id_from_authorization(await self._enrolment.current_enrolment(), authorization)
        async with self._limits.using_body_within_limits(request) as body:
            enrolment = await self._enrolment.current_enrolment()  # a token may be revoked while its body arrives
            gateway = gateway_id_from_authorization(enrolment, authorization)
            sample_request = await self._run_outside_loop_if_large(len(body), parse_body, body)
            entry = await self._catalogue.find_agreement_by_id(sample_request.agreement)
            arrivals = await self._run_outside_loop_if_large(
                len(body), _make_arrivals_of_request, sample_request, entry, gateway
            )
            needs_tokens = enrolment.is_needed and gateway is None
            tokens = [token_digest(client) for client in sample_request.clients] if needs_tokens else []
            try:
                verdicts = await self._writer.write_samples(entry.id, sample_request.round, arrivals, tokens)
            except UnknownToken as unknown:
                field_name = sample_request.describe_field(unknown.place, "client")
                raise RequestProblem(403, f"{field_name} is not one of the tokens of this collection") from None
        ticket = entry.stored_agreement.ticket if sample_request.alone and entry.stored_agreement.shown == AFTER else ""
        return _response_with_verdicts(verdicts, alone=sample_request.alone, ticket=ticket)

    async def _run_outside_loop_if_large(self, size: int, function: Callable[..., Any], *arguments: Any) -> Any:
        if size <= _SMALL:
            return function(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self._reading, function, *arguments)

    async def _query_parameters_and_agreement(
        self, request: Request, *names: str
    ) -> tuple[dict[str, str], CollectedAgreement]:
        """The query's parameters, and the agreement that they name; by default the newest."""
        parameters = _read_query_parameters(request, "agreement", *names)
        return parameters, await self._catalogue.find_agreement_by_prefix(parameters.get("agreement"))

    async def _get_estimate(self, request: Request) -> Response:
        parameters, entry = await self._query_parameters_and_agreement(request, "round", "confidence")
        number = _requested_round(parameters, entry)
        if _may_see_estimates(request, entry):
            return await self._answer_estimate(request, parameters, "estimate", [(entry, number)])
        days = await asyncio.get_running_loop().run_in_executor(
            None, self._store.sample_counts_by_day, entry.id, number
        )
        return _json_response(json_document_of_hidden_estimate(entry.stored_agreement, entry.sampler, days, number))

    async def _get_estimates_of_groups(self, request: Request) -> Response:
        parameters, entry = await self._query_parameters_and_agreement(request, "round", "confidence", "by")
        number, by = _requested_round(parameters, entry), parameters.get("by")
        if by is None:
            sides = [(group, number) for group in self._catalogue.agreements_of_public_groups(entry)]
            return await self._answer_estimate(request, parameters, "groups", sides)
        if by not in survey_columns_to_group_by(entry.agreement):
            raise bad_request_problem(
                "by is not a column of the survey that a question asks for together with another one"
            )
        return await self._answer_estimate(request, parameters, "within", [(entry, number)], by)

    async def _get_estimate_of_stages(self, request: Request) -> Response:
        parameters, entry = await self._query_parameters_and_agreement(request, "round", "confidence")
        number = _requested_round(parameters, entry)
        stages = self._catalogue.agreements_estimable_as_stages(entry)
        if not stages:
            raise RequestProblem(404, "the collection has no stages that can be estimated together")
        return await self._answer_estimate(request, parameters, "pooled", [(stage, number) for stage in stages])

    async def _get_estimate_of_change(self, request: Request) -> Response:
        parameters, entry = await self._query_parameters_and_agreement(request, "round", "confidence", "from")
        later = _requested_round(parameters, entry)
        if later == 1 and "from" not in parameters:
            raise bad_request_problem("there is no round before round 1; name another one by round")
        earlier = _requested_round({"from": parameters.get("from", str(later - 1))}, entry, "from")
        if earlier == later:
            raise bad_request_problem("from and round are the same round; a change is that from one to another")
        return await self._answer_estimate(request, parameters, "change", [(entry, earlier), (entry, later)])

    async def _answer_estimate(
        self,
        request: Request,
        parameters: dict[str, str],
        kind: str,
        sides: list[tuple[CollectedAgreement, int]],
        by: str = "",
    ) -> Response:
        if not all(_may_see_estimates(request, entry) for entry, _ in sides):
            raise RequestProblem(
                403, "the results of this collection are not shown, or only to people who have taken part"
            )
        confidence = parameters.get("confidence", USUAL_CONFIDENCE)
        estimate = await self._estimates.current_estimate(EstimateRequest(kind, tuple(sides), confidence, by))
        return _response_with_entity_tag(request, estimate.body, estimate.tag, JSON)

    async def _get_collection(self, request: Request) -> Response:
        _, entry = await self._query_parameters_and_agreement(request)
        enrolment = await self._enrolment.current_enrolment()
        entries = self._catalogue.agreements_of_collection(entry.stored_agreement.collection)
        newest = {member.stored_agreement.collection: member for member in self._catalogue.all_agreements}
        return _json_response(
            {
                "collection": entry.stored_agreement.collection,
                "agreement": entries[-1].id,
                "round": entries[-1].newest_round,
                "enrolment": enrolment.is_needed,
                "closed": entry.stored_agreement.closed,
                "shown": entry.stored_agreement.shown,
                "agreements": [_offered_agreement_as_json_value(member) for member in entries],
                "groups": [member.id for member in self._catalogue.agreements_of_public_groups(entry)],
                "stages": [member.id for member in self._catalogue.agreements_estimable_as_stages(entry)],
                "within": survey_columns_to_group_by(entry.agreement),
                "beside": [
                    {"agreement": member.id, "purpose": member.agreement.purpose}
                    for member in newest.values()
                    if member.stored_agreement.collection != entry.stored_agreement.collection
                ],
            }
        )

    async def _get_agreement(self, request: Request) -> Response:
        _, entry = await self._query_parameters_and_agreement(request)
        return _response_with_entity_tag(request, entry.file_bytes, f'"{entry.id}"', JSON)

    async def _get_weights(self, request: Request) -> Response:
        _, entry = await self._query_parameters_and_agreement(request)
        if entry.weights_file_bytes is None:
            raise RequestProblem(404, "the agreement has no weights beside its own text")
        return _response_with_entity_tag(request, entry.weights_file_bytes, f'"{entry.id}"', "application/octet-stream")

    async def _get_questions(self, request: Request) -> Response:
        _, entry = await self._query_parameters_and_agreement(request)
        if entry.stored_agreement.questions is None:
            raise RequestProblem(404, "no questions were written for this agreement")
        return _response_with_entity_tag(
            request, entry.stored_agreement.questions.encode(), f'"{entry.questions_digest}"', JSON
        )

    async def _get_health(self, request: Request) -> Response:
        _read_query_parameters(request)
        entry = await self._catalogue.find_agreement_by_prefix(None)
        await asyncio.get_running_loop().run_in_executor(
            None, self._store.sample_counts_by_day, entry.id, entry.newest_round
        )
        return _json_response({"status": "ok"})

    async def _get_metrics(self, request: Request) -> Response:
        _read_query_parameters(request)
        text = await asyncio.get_running_loop().run_in_executor(None, self._metrics.prometheus_text)
        return Response(text, headers={"Content-Type": MEDIA_TYPE, "Cache-Control": "no-store"})


def _make_arrivals_of_request(
    sample_request: SampleRequest, entry: CollectedAgreement, gateway: str | None
) -> list[Arrival]:
    entry.refuse_closed_round(sample_request.round)
    return entry.make_arrivals_with_digests(
        sample_request.round,
        sample_request.clients,
        sample_request.keys,
        sample_request.outcome_numbers(entry.sample_reader),
        gateway,
    )


def _response_with_verdicts(verdicts: Sequence[Verdict], *, alone: bool, ticket: str = "") -> Response:
    """The answer to samples, padded with spaces so that its length is the same for every result.

    The longest answer to several samples is that all are refused; to one sample, it is a 409. The status line of a 409 is longer by as much
    as its body is shorter. All answers to a sample have the same number of bytes, including headers; those of a closed collection too.
    `ticket`: for whoever has a sample in the collection, where that lets them see estimates.
    """
    refused_indices = [index for index, verdict in enumerate(verdicts) if verdict is Verdict.SPOKEN]
    counted_samples = sum(verdict is Verdict.COUNTED for verdict in verdicts)
    late_indices = [index for index, verdict in enumerate(verdicts) if verdict is Verdict.CLOSED]
    again = len(verdicts) - counted_samples - len(refused_indices) - len(late_indices)
    document: dict[str, Any] = {"counted": counted_samples, "again": again, "refused": refused_indices}
    status = HTTPStatus.OK
    if late_indices:
        status = HTTPStatus.GONE
        document = {"error": _CLOSED, **document, **({} if alone else {"closed": late_indices})}
    elif alone and refused_indices:
        status = HTTPStatus.CONFLICT
        document = {"error": _SPOKEN, **document}
    ticket_field = {"ticket": ticket} if ticket else {}
    if status == HTTPStatus.OK:
        document |= ticket_field
    largest_counts = dict.fromkeys(("counted", "again"), len(verdicts)) | {"refused": list(range(len(verdicts)))}
    longest = (
        len(json.dumps({"error": _SPOKEN, **largest_counts, **ticket_field}))
        + len(_LONGEST_PHRASE)
        - len(status.phrase)
    )
    body = json.dumps(document).ljust(longest).encode()
    return Response(body, status_code=status, media_type=JSON, headers={"Cache-Control": "no-store"})


def _may_see_estimates(request: Request, entry: CollectedAgreement) -> bool:
    """Whether estimates are shown to whoever asks: to everybody, to the holders of the collection's one ticket, or to nobody."""
    stored_agreement = entry.stored_agreement
    header = request.headers.get("authorization", "")
    has_ticket = bool(stored_agreement.ticket) and secrets.compare_digest(
        header.encode(), f"Bearer {stored_agreement.ticket}".encode()
    )
    return stored_agreement.shown == ALWAYS or (stored_agreement.shown == AFTER and has_ticket)


def _body_parser_for(request: Request) -> Callable[[bytes], SampleRequest]:
    kinds = request.headers.getlist("content-type")
    media_type = kinds[0].partition(";")[0].strip().lower() if len(kinds) == 1 else ""
    if media_type not in _READERS:
        raise RequestProblem(415, f"the content type is not {' or '.join(_READERS)}")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise RequestProblem(415, "the body is compressed; send it as it is")
    return _READERS[media_type]


def _read_query_parameters(request: Request, *names: str) -> dict[str, str]:
    """The query's parameters; an error for an unknown or repeated one."""
    pairs = request.query_params.multi_items()
    parameters = dict(pairs)
    if len(parameters) != len(pairs) or not parameters.keys() <= set(names):
        known_text = f"those there are: {', '.join(names)}" if names else "there are none here"
        raise bad_request_problem(f"the query has a parameter that is not known, or one twice; {known_text}")
    return parameters


def _requested_round(parameters: dict[str, str], entry: CollectedAgreement, name: str = "round") -> int:
    """The requested round; by default the newest open one."""
    text = parameters.get(name, str(entry.newest_round))
    if not (text.isascii() and text.isdigit() and len(text) < 19 and 1 <= int(text) <= entry.agreement.rounds):
        raise bad_request_problem(f"{name} is not a whole number from 1 to {entry.agreement.rounds}")
    return int(text)


def _offered_agreement_as_json_value(entry: CollectedAgreement) -> dict[str, Any]:
    agreement = entry.agreement
    fields: dict[str, Any] = {
        "agreement": entry.id,
        "follows": entry.stored_agreement.follows,
        "rounds": agreement.rounds,
    }
    fields["open"] = [] if entry.stored_agreement.closed else list(entry.rounds)
    signature = entry.stored_agreement.signed
    fields |= {"purpose": agreement.purpose, "signed": None if signature is None else signature.document}
    return {**fields, "questions": entry.questions_digest}


def _json_response(document: Any) -> Response:
    body = json.dumps(document, allow_nan=False).encode()
    return Response(body, media_type=JSON, headers={"Cache-Control": "no-store"})


def _response_with_entity_tag(request: Request, body: bytes, tag: str, media_type: str) -> Response:
    """An answer that is not sent again to a client that has it."""
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if tag in (part.strip() for part in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media_type, headers=headers)


async def _refusal_response(_: Request, problem: Any) -> Response:
    response: Response = problem.response
    return response


async def _unknown_path_or_method_response(_: Request, error: Any) -> Response:
    """The router's own error: an unknown path or method."""
    allowed_methods = (error.headers or {}).get("Allow")
    sentence = "there is nothing at this path" if allowed_methods is None else f"this path takes {allowed_methods}"
    return RequestProblem(error.status_code, sentence, headers=error.headers).response


async def _failure_response(_: Request, __: Any) -> Response:
    """The answer to an unexpected error, which the guard reports."""
    return FAILED.response


async def _store_failure_response(_: Request, __: Any) -> Response:
    return unavailable_problem("the store cannot be read now").response
