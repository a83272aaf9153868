"""What is read of a request: exactly what the agreement knows. What is not is told by its place, and never repeated."""

import io
import json
from typing import Any

import pyarrow as pa
import pytest

from discreet import GaussianMixtures, Interval, Labels, LinearSampler, Numbers, OptimalSampler, Simplex
from discreet.agreement import Agreement
from discreet.client._protocol import MOST_BATCH, MOST_NAME
from discreet.collect._requests import RequestProblem
from discreet.collect._samples import OutcomeReader, parse_arrow_samples, parse_json_samples
from discreet.domain import Coding, Domain
from discreet.estimation._sample_tables import coding_and_sampler

ID = "ab" * 32
ROW = {"client": "ann", "key": "k", "sample": 1}
ONE = {"agreement": ID, "round": 1, **ROW}
METADATA = {"agreement": ID, "round": "1"}


def refused(read: Any, body: bytes) -> RequestProblem:
    with pytest.raises(RequestProblem) as found:
        read(body)
    assert found.value.status in (400, 422)
    assert found.value.sentence.isprintable()
    assert len(found.value.sentence) < 400
    return found.value


def stream(columns: dict[str, Any], metadata: dict[str, str] | None = None, options: Any = None) -> bytes:
    table = pa.table(columns).replace_schema_metadata(METADATA if metadata is None else metadata)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def columns(rows: int = 3, **others: Any) -> dict[str, Any]:
    names = [f"c{number}" for number in range(rows)]
    return {"client": names, "key": names, "sample": list(range(rows)), **others}


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"1", b"null", b"{", b"\xff{}", "{}".encode("utf-16"), b"\xef\xbb\xbf" + json.dumps(ONE).encode(),
        b"[" * 100_000, b'{"a":' * 100_000, b"[" * 900 + b"]" * 900, json.dumps(ONE).replace("1,", "NaN,").encode(),
        json.dumps(ONE).replace("1}", "Infinity}").encode(), json.dumps(ONE).replace("1}", "9" * 5000 + "}").encode(),
        json.dumps(ONE).replace("}", ', "sample": 1}').encode(), json.dumps({**ONE, "more": 1}).encode(),
        json.dumps({**ONE, "samples": []}).encode(), json.dumps({"agreement": ID, "round": 1}).encode(),
        json.dumps({"agreement": ID, "round": 1, "samples": [1]}).encode(), b'{"agreement": 1, "round": 1, "samples": {}}',
        json.dumps({"agreement": ID, "round": 1, "samples": [{**ROW, "x": 1}]}).encode(),
        json.dumps({"agreement": ID, "round": 1, "samples": []}).encode(),
        json.dumps({"agreement": ID, "round": 1, "samples": [ROW] * (MOST_BATCH + 1)}).encode(),
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(body: bytes) -> None:
    refused(parse_json_samples, body)


NAMES: list[Any] = [1, None, True, "", " ", "a b", "a\0", "a\n", "é", "\ud800", "\u202e", "a" * (MOST_NAME + 1), [], {}]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("field", ["client", "key"])
def test_names_and_keys_are_short_visible_texts(field: str, name: Any) -> None:
    problem = refused(parse_json_samples, json.dumps({**ONE, field: name}).encode())
    assert (problem.status, problem.sentence[: len(field)]) == (422, field)
    batch = {"agreement": ID, "round": 1, "samples": [ROW, {**ROW, field: name}]}
    assert refused(parse_json_samples, json.dumps(batch).encode()).sentence.startswith(f"samples[1].{field}")


@pytest.mark.parametrize(("field", "value"), [
    ("agreement", 1), ("agreement", "ab"), ("agreement", "é" * 64), ("round", 0), ("round", True), ("round", 1.0), ("round", "1"),
    ("round", -1), ("round", 10**30),
])  # fmt: skip
def test_agreement_and_round_are_what_they_say(field: str, value: Any) -> None:
    assert refused(parse_json_samples, json.dumps({**ONE, field: value}).encode()).sentence.startswith(field)


def on_a_line() -> Domain:
    mixtures = GaussianMixtures(1, box=(-4.0, 4.0))
    coding, _ = coding_and_sampler(Agreement.of(OptimalSampler(mixtures, epsilon=1.0)))
    return coding.domain


@pytest.mark.parametrize(
    ("domain", "good", "bad"),
    [
        (Numbers(3), [0, 2], [3, -1, True, False, 1.0, "1", None, [], {}, 10**30, "0"]),
        (Labels(["a", "1", "é"]), ["a", "1", "é"], ["b", 1, True, None, "A", "a ", "\ud800", ["a"]]),
        (Labels([5, 7]), [5, 7], [6, "5", 5.0, True, None]),
        (Interval(0.0, 10.0, cells=4), [0, 0.0, 9.99, 10, 2.5], [-1e-9, 10.1, "1", True, None, 10**400, 1e308, []]),
    ],
)
def test_a_sample_is_read_as_an_estimate_reads_it_and_as_nothing_else(
    domain: Domain, good: list[Any], bad: list[Any]
) -> None:
    outcomes = OutcomeReader(Coding(domain))
    assert outcomes.stored_numbers_from_json(good).tolist() == domain.numbers(good).tolist()
    assert outcomes.stored_numbers_from_json(bad).tolist() == [-1] * len(bad)
    assert all(outcomes.stored_numbers_from_json([each]).tolist() == domain.numbers([each]).tolist() for each in good)


def test_a_point_of_a_line_is_in_its_cell_or_in_none() -> None:
    domain = on_a_line()
    outcomes = OutcomeReader(Coding(domain))
    points = [-4.0, 0.0, 1.234, 4.0]
    assert outcomes.stored_numbers_from_json(points).tolist() == domain.numbers(points).tolist()
    assert outcomes.stored_numbers_from_json([-4.1, 4.1, None, "1"]).tolist() == [-1] * 4
    found = outcomes.stored_numbers_from_column(pa.array([1.234, float("nan"), float("inf"), -9.0]))
    assert found.tolist() == [domain.numbers([1.234])[0], -1, -1, -1]


def test_an_arrow_stream_is_read_like_a_document() -> None:
    sent = parse_arrow_samples(stream(columns()))
    assert (sent.agreement, sent.round, sent.clients, sent.keys) == (ID, 1, ["c0", "c1", "c2"], ["c0", "c1", "c2"])
    assert sent.outcome_numbers(OutcomeReader(Coding(Numbers(3)))).tolist() == [0, 1, 2]
    with pytest.raises(RequestProblem, match="row 2 of column 'sample' is not a whole number from 0 to 1"):
        sent.outcome_numbers(OutcomeReader(Coding(Numbers(2))))


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_texts_may_be_laid_out_as_they_like(kind: pa.DataType) -> None:
    texts = (
        pa.array(["b", "a", "b"]).cast(kind)
        if not pa.types.is_dictionary(kind)
        else pa.array(["b", "a", "b"]).dictionary_encode()
    )
    sent = parse_arrow_samples(stream({"client": texts, "key": texts, "sample": texts}))
    assert sent.clients == ["b", "a", "b"]
    assert sent.outcome_numbers(OutcomeReader(Coding(Labels(["a", "b"])))).tolist() == [1, 0, 1]


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_compressed_stream_is_read_if_it_does_not_unpack_to_too_much(codec: str) -> None:
    options = pa.ipc.IpcWriteOptions(compression=codec)
    assert len(parse_arrow_samples(stream(columns(1000), options=options)).clients) == 1000
    bomb = columns(1, client=["a" * (1 << 26)])
    assert len(stream(bomb, options=options)) < 1 << 22
    refused(parse_arrow_samples, stream(bomb, options=options))


@pytest.mark.parametrize(
    "body",
    [
        b"", b"ARROW1", b"\xff" * 100, stream(columns())[:100], stream(columns(), {}), stream(columns(), {"agreement": ID}),
        stream(columns(), {**METADATA, "round": "01"}), stream(columns(), {**METADATA, "round": "٣"}),
        stream(columns(), {**METADATA, "round": "0"}), stream(columns(), {**METADATA, "agreement": "é"}),
        stream(columns(0, sample=pa.array([], pa.int64()), client=pa.array([], pa.string()), key=pa.array([], pa.string()))),
        stream(columns(MOST_BATCH + 1)), stream({**columns(), "more": [1, 2, 3]}), stream({"client": ["a"], "sample": [1]}),
        stream(columns(client=[1, 2, 3])), stream(columns(client=["a", None, "b"])), stream(columns(sample=[1, None, 2])),
        stream(columns(client=pa.array(["a", None, "b"]).dictionary_encode())), stream(columns(sample=[[1], [2], [3]])),
        stream(columns(client=pa.DictionaryArray.from_arrays([0, 1, 1], ["a", None]))),
        stream(columns(sample=pa.array([None] * 3, pa.null()))), stream(columns(client=["a" * (MOST_NAME + 1)] * 3)),
        stream(columns(client=pa.DictionaryArray.from_arrays([0, 0, 0], ["a" * 100_000]))), stream(columns(key=["a b", "c", "d"])),
        stream(columns(sample=pa.array([1, 2, 3], pa.timestamp("s")))), stream(columns(sample=pa.array([b"a", b"b", b"c"]))),
        stream(columns(sample=pa.array([[1], [2], [3]], pa.list_view(pa.int64())))),
    ],
)  # fmt: skip
def test_what_is_no_stream_of_samples_is_refused(body: bytes) -> None:
    refused(parse_arrow_samples, body)


@pytest.mark.parametrize("kind", [pa.string(), pa.float64(), pa.bool_(), pa.date32()])
def test_a_column_of_another_type_holds_no_samples(kind: pa.DataType) -> None:
    values = pa.array([0, 1, 2]).cast(pa.int32()).cast(kind) if kind != pa.bool_() else pa.array([True, False, True])
    with pytest.raises(RequestProblem):
        parse_arrow_samples(stream(columns(sample=values))).outcome_numbers(OutcomeReader(Coding(Numbers(3))))


def test_numbers_of_any_width_are_numbers() -> None:
    for kind in (pa.int8(), pa.uint16(), pa.int32(), pa.uint64()):
        sent = parse_arrow_samples(stream(columns(sample=pa.array([0, 1, 2], kind))))
        assert sent.outcome_numbers(OutcomeReader(Coding(Numbers(3)))).tolist() == [0, 1, 2]
    largest = parse_arrow_samples(stream(columns(sample=pa.array([0, 1, 2**64 - 1], pa.uint64()))))
    with pytest.raises(RequestProblem):
        largest.outcome_numbers(OutcomeReader(Coding(Numbers(3))))


def test_an_agreement_on_labels_is_read_by_its_own() -> None:
    coding, _ = coding_and_sampler(Agreement.of(LinearSampler(Simplex(["x", "y"]), epsilon=1.0)))
    assert OutcomeReader(coding).stored_numbers_from_json(["y", "x", 0]).tolist() == [1, 0, -1]


LINE = coding_and_sampler(
    Agreement.of(OptimalSampler(GaussianMixtures(1, radius=1.0, scale=1.0, box=(-3, 3)), epsilon=1.0))
)[0]


@pytest.mark.parametrize(
    "coding",
    [
        Coding(Labels(("x", "y", "z"))),
        Coding(Labels((10, 20, 30))),
        Coding(Numbers(3)),
        Coding(Interval(0.0, 1.0, cells=3)),
        LINE,
    ],
    ids=["texts", "whole numbers", "numbers", "cells", "a line"],
)
@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64()])
def test_a_stream_of_numbers_names_outcomes_by_their_place(coding: Coding, kind: pa.DataType) -> None:
    """Whatever the outcomes are: 0 is the first of them. So all outcomes take as many bytes."""
    outcomes, numbered = OutcomeReader(coding), {**METADATA, "samples": "numbers"}
    body = stream(columns(sample=pa.array([0, 2, 1], kind)), numbered)
    assert parse_arrow_samples(body).outcome_numbers(outcomes).tolist() == [0, 2, 1]
    assert len({len(stream(columns(sample=pa.array(three, kind)), numbered)) for three in ([0, 0, 0], [2, 1, 2])}) == 1
    for wrong in (-1, outcomes.size, 2**63):
        try:
            values = pa.array([0, wrong, 0], kind)
        except (OverflowError, pa.ArrowInvalid):
            continue
        with pytest.raises(
            RequestProblem,
            match=f"row 1 of column 'sample' is not the number of an outcome, from 0 to {outcomes.size - 1}",
        ):
            parse_arrow_samples(stream(columns(sample=values), numbered)).outcome_numbers(outcomes)


def test_what_says_that_it_holds_numbers_holds_them() -> None:
    for sample in (["x", "y", "z"], [0.0, 1.0, 2.0]):
        assert (
            refused(parse_arrow_samples, stream(columns(sample=sample), {**METADATA, "samples": "numbers"})).status
            == 422
        )
    for said in ("", "labels", "Numbers"):
        assert refused(parse_arrow_samples, stream(columns(), {**METADATA, "samples": said})).status == 400


def test_spaces_after_a_document_are_not_part_of_it() -> None:
    sent = parse_json_samples(json.dumps(ONE).encode() + b" " * 500 + b"\n")
    assert (sent.alone, list(sent.samples)) == (True, [1])
