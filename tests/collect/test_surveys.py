"""Collections of surveys: devices, gateways and people send one report each, and the answers are those of all reports."""

import datetime
import io
import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from discreet import DiscreetError
from discreet.agreement import Agreement
from discreet.cli._app import app
from discreet.client import Client, Receipt, send_table
from discreet.client._client import longest_sample_length
from discreet.client._collector import sample_request_body
from discreet.client._device_data import DeviceData
from discreet.client._protocol import ARROW
from discreet.collect import export, open_store, publish
from discreet.collect._counting import KEPT, Verdict, reports_as_signed_integers
from discreet.collect._results import close_collection
from discreet.collect._store import Store
from discreet.errors import BudgetError, StoreError
from discreet.estimation import answer_survey
from discreet.mechanisms._reports._blocks import MaskedSubsets
from discreet.survey import Dates, Number, Survey, SurveySampler, histogram, mean, quantiles, shares
from discreet.survey._columns import JointColumns
from discreet.survey._strategies import Part
from discreet.tables import read_secret, sample, write_secret
from tests.collect.behaviour import DAY
from tests.collect.running import one, running
from tests.collect.test_reports import arrivals

SURVEY = Survey(
    {"region": ["north", "south", "<b>east</b>"], "amount": Number(0, 500, "€"), "trips": 5},
    [
        shares("region"),
        mean("amount"),
        shares("region", "trips"),
        quantiles("amount", at=(0.5,)),
        histogram("amount", cells=4),
    ],
)
SAMPLER = SurveySampler(SURVEY, epsilon=2.0)
AGREED = Agreement.of(SAMPLER, purpose="A survey")
ROWS: list[dict[str, Any]] = [
    {"region": ["north", "south", "<b>east</b>"][i % 3], "amount": 7.0 * i % 500, "trips": i % 5} for i in range(600)
]


def reports_of(clients: int) -> Any:
    table = {name: [row[name] for row in ROWS[:clients]] for name in SURVEY.columns}
    return SAMPLER.release_table(table)


def test_the_store_holds_every_report_as_often_as_it_came(either_store: Store) -> None:
    either_store.add(AGREED)
    reports = np.concatenate([reports_of(300), np.full(40, reports_of(1)[0])])
    sent, done = arrivals(reports), 0
    for many in (1, 1, 30, 40, 100, 168):
        assert either_store.count_arrivals(AGREED.id, 1, sent[done : done + many], DAY) == [Verdict.COUNTED] * many
        done += many
        assert either_store.outcome_counts(AGREED.id, 1).tolist() == sorted(
            reports_as_signed_integers(reports[:done]).tolist()
        )
    assert either_store.count_arrivals(AGREED.id, 1, sent, DAY) == [Verdict.AGAIN] * 340
    assert len(either_store.outcome_counts(AGREED.id, 1)) == 340
    with pytest.raises(DiscreetError, match="no report of this survey"):
        either_store.count_arrivals(AGREED.id, 1, arrivals([SAMPLER.largest + 1], 900), DAY)


def test_reports_past_2_63_are_stored_and_come_back(either_store: Store) -> None:
    masks = Part(0, JointColumns(("town",)), MaskedSubsets(64, 17), 1.0)
    wide = SurveySampler(Survey({"town": 64}, [shares("town")]), epsilon=1.0, parts=[masks])
    agreement = Agreement.of(wide)
    either_store.add(agreement)
    reports = wide.release_rows(np.full(200, 63))
    assert (reports >= 1 << 63).any()
    either_store.count_arrivals(agreement.id, 1, arrivals(reports), DAY)
    assert sorted(either_store.outcome_counts(agreement.id, 1).view(np.uint64).tolist()) == sorted(reports.tolist())


def test_a_pool_with_what_is_no_report_is_damage(tmp_path: Path) -> None:
    opened: Any = open_store(tmp_path / "store.db")
    with closing(opened) as store:
        store.add(AGREED)
        store.count_arrivals(AGREED.id, 1, arrivals(reports_of(3)), DAY)
        with store._transaction_without_samples() as database:
            database.execute("UPDATE pool SET content = ?", (store._seal.encode_pool({(1, 1): [SAMPLER.largest + 1]}),))
        with pytest.raises(StoreError, match="damaged"):
            store.outcome_counts(AGREED.id, 1)


def test_counts_change_by_batches_and_not_by_one_client(tmp_path: Path) -> None:
    """A row of the table of counts appears only together with at least KEPT - 1 others."""
    opened: Any = open_store(tmp_path / "store.db")
    with closing(opened) as store:
        store.add(AGREED)
        before = 0
        for number, arrival in enumerate(arrivals(reports_of(200))):
            store.count_arrivals(AGREED.id, 1, [arrival], DAY)
            with store._reader.transaction() as database:
                (now,) = database.execute("SELECT coalesce(sum(n), 0) FROM counted").fetchone()
            assert now == before or now - before >= KEPT, number
            before = now


def told_answers(said: dict[str, Any]) -> list[Any]:
    return [question["answers"] for question in said["questions"]]


@pytest.mark.slow
def test_a_service_answers_a_survey_and_an_export_and_a_page_say_the_same(tmp_path: Path) -> None:
    AGREED.write(tmp_path / "agreement.json")
    reports = reports_of(600)
    with running(tmp_path, "agreement.json") as collector:
        empty = collector.get("/estimate").json
        assert (empty["questions"], empty["notes"], empty["clients"]) == ([], ["there are no reports yet"], 0)
        first = one(AGREED, "c0", str(reports[0]))
        assert collector.send(first).json == {"counted": 1, "again": 0, "refused": []}
        assert collector.send(first).json == {"counted": 0, "again": 1, "refused": []}
        rows = [{"client": f"c{i}", "key": f"key-c{i}", "sample": str(each)} for i, each in enumerate(reports[:300])]
        assert collector.send({"agreement": AGREED.id, "round": 1, "samples": rows}).json["counted"] == 299
        table = pa.table(
            {"client": [f"c{i}" for i in range(300, 600)], "key": ["k"] * 300, "sample": pa.array(reports[300:])}
        )
        about, body = {"agreement": AGREED.id, "round": "1"}, io.BytesIO()
        with pa.ipc.new_stream(body, table.schema.with_metadata(about)) as stream:
            stream.write_table(table.replace_schema_metadata(about))
        assert collector.send(body.getvalue(), ARROW).json == {"counted": 300, "again": 0, "refused": []}
        wrong = [
            int(reports[0]),
            "-1",
            "01",
            "",
            "x",
            None,
            True,
            str(SAMPLER.largest + 1),
            str(2**64 - 1),
            str(2**64),
            [],
        ]
        for number, each in enumerate(wrong):
            answer = collector.send(one(AGREED, f"w{number}", each))
            assert (answer.status, "sample is not a report of the agreement" in answer.json["error"]) == (422, True), (
                each
            )
        said = collector.get("/estimate").json
        assert collector.get("/collection").json["agreement"] == AGREED.id
        assert collector.stop() == 0
        assert collector.said == ""
    expected = answer_survey(SAMPLER, reports)
    assert said["clients"] == 600
    assert told_answers(said) == [answer.rows() for answer in expected]
    for ending in ("parquet", "csv", "arrow"):
        out = tmp_path / f"out.{ending}"
        with closing(open_store(tmp_path / "samples.db")) as store:
            assert (export(store, out).samples, out.exists()) == (600, True)
        again = CliRunner().invoke(
            app,
            ["estimate", str(out), "--agreement", str(tmp_path / "agreement.json"), "--json"],
            catch_exceptions=False,
        )
        assert told_answers(json.loads(again.stdout)) == told_answers(said)
    with closing(open_store(tmp_path / "samples.db")) as store:
        close_collection(store)
        done = publish(store, tmp_path / "published")
    assert (done.samples, done.what) == (600, "report")
    page = (tmp_path / "published" / "index.html").read_text()
    assert "<b>east" not in page
    assert "&lt;b&gt;east" in page
    frozen = json.loads((tmp_path / "published" / "estimate.json").read_text())
    assert told_answers(frozen) == told_answers(said)
    listed = pl.read_csv(tmp_path / "published" / "estimate.csv", infer_schema=False)
    flat = [answer for question in said["questions"] for answer in question["answers"]]
    for name in ("estimate", "low", "high", "all_low", "all_high"):
        assert [float(each) for each in listed[name]] == [answer[name] for answer in flat]
        assert all(
            f'data-{name.replace("_", "-")}="{answer[name]!r}"' in (tmp_path / "published" / "picture.svg").read_text()
            for answer in flat
        )


@pytest.mark.slow
def test_a_device_answers_a_survey_once_whatever_it_holds(tmp_path: Path) -> None:
    AGREED.write(tmp_path / "agreement.json")
    with running(tmp_path, "agreement.json") as collector:
        client = Client(collector.address, ledger=tmp_path / "ledger", budget=2.0)
        first = client.send(rows=ROWS[:3])
        assert first == Receipt(True, AGREED.id, AGREED.id, 1, first.sample)
        assert SAMPLER.check_reports([int(first.sample)]).tolist() == [int(first.sample)]
        again = Receipt(False, AGREED.id, AGREED.id, 1, first.sample)
        assert client.send(rows={"region": ["south"], "amount": [1.0], "trips": [2]}) == again
        assert Client(collector.address, ledger=tmp_path / "ledger", agreement=AGREED).send(records=["north"]) == again
        assert float(client.ledger.spent().basic) == 2.0
        with pytest.raises(BudgetError):
            Client(collector.address, ledger=tmp_path / "poor", budget=1.5).send(rows=ROWS[:1])
        cases: list[tuple[dict[str, Any], float]] = [
            ({"rows": []}, 1.0),
            ({"rows": [{"region": "west", "amount": 3.0, "trips": 1}]}, 1.0),
            ({"rows": [{"region": "north"}, ROWS[0]]}, 0.5),
            ({"rows": [{"region": ["north"], "amount": "x", "trips": None}]}, 1.0),
            ({"records": ["north"]}, 1.0),
            ({"p": [0.5, 0.5]}, 1.0),
        ]
        for place, (held, outside) in enumerate(cases):
            receipt = Client(collector.address, ledger=tmp_path / f"other {place}", budget=2.0).send(**held)
            assert (receipt.counted, receipt.outside, bool(receipt.problem)) == (True, outside, True)
        moved = Client(collector.address, ledger=tmp_path / "moved", budget=2.0).send(rows=[{**ROWS[0], "amount": 1e9}])
        assert (moved.counted, moved.outside) == (True, 0.0)
        assert collector.get("/estimate").json["clients"] == 8


def test_what_is_no_list_of_rows_is_refused_before_the_collector_is_asked(tmp_path: Path) -> None:
    client = Client("http://127.0.0.1:9", ledger=tmp_path / "ledger", budget=1.0)
    for wrong in (["north"], "north", {"region": ["north"], "trips": [1, 2]}):
        with pytest.raises(DiscreetError, match=r"rows|records"):
            client.send(rows=wrong)
    with pytest.raises(DiscreetError, match="pass one of"):
        client.send(rows=ROWS[:1], records=["north"])


def test_bodies_of_all_reports_have_one_length() -> None:
    reports = [str(each) for each in [0, SAMPLER.largest, *reports_of(200).tolist()]]
    bodies = {len(sample_request_body("a" * 64, 1, "c", each, longest_sample_length(SAMPLER))) for each in reports}
    assert len(bodies) == 1


def test_a_device_without_rows_sends_a_uniform_report_of_each_part() -> None:
    """The law of the report of a device that holds nothing: the coin of the parts, and a uniform block of each."""
    small = SurveySampler(Survey({"a": 3, "b": 2}, [shares("a"), shares("b")]), epsilon=1.0)
    fitted = DeviceData.from_arguments(None, None, None, []).prepare_draw(small, Agreement.of(small))
    drawn = np.array([fitted.draw() for _ in range(20_000)])
    parts = np.array([small.part_of(each) for each in small.reports().tolist()])
    counts = np.array([(drawn == each).sum() for each in small.reports().tolist()])
    expected = np.array([float(small.exact_shares[part]) * len(drawn) / (parts == part).sum() for part in parts])
    assert (np.abs(counts - expected) < 5.0 * np.sqrt(expected)).all()


def survey_table() -> pl.DataFrame:
    return pl.DataFrame(ROWS).with_columns(who=pl.Series([f"client {i % 250}" for i in range(len(ROWS))]))


@pytest.mark.slow
def test_a_gateway_sends_the_reports_that_sample_writes(tmp_path: Path) -> None:
    AGREED.write(tmp_path / "agreement.json")
    write_secret(tmp_path / "secret")
    shutil.copy(tmp_path / "secret", tmp_path / "copy")  # which serves no ledger
    secret = read_secret(tmp_path / "secret")
    how: dict[str, Any] = {"client": "who", "secret": secret}
    with running(tmp_path, "agreement.json") as collector:
        for value, said in (
            (["region"], "a survey of"),
            (["region", "amount", "trips", "who2"], "who2"),
            ("region", "a survey of"),
        ):
            with pytest.raises(DiscreetError, match=said):
                send_table(collector.address, survey_table(), value=value, budget=2.0, **how)
        sent = send_table(collector.address, survey_table(), value=["trips", "region", "amount"], **how)
        assert (sent.counted, sent.again, sent.refused) == (250, 0, 0)
        again = send_table(collector.address, survey_table(), value=["region", "amount", "trips"], **how)
        assert (again.counted, again.again, again.refused) == (0, 250, 0)
        said = collector.get("/estimate").json
    drawn = sample(survey_table(), client="who", agreement=AGREED, secret=read_secret(tmp_path / "copy"))
    expected = answer_survey(SAMPLER, drawn["report"].to_numpy())
    assert told_answers(said) == [answer.rows() for answer in expected]


@pytest.mark.slow
def test_send_takes_the_columns_of_a_survey_one_by_one(tmp_path: Path) -> None:
    AGREED.write(tmp_path / "agreement.json")
    write_secret(tmp_path / "secret")
    survey_table().with_columns(
        pl.when(pl.col("who") == "client 7").then(pl.lit("nowhere")).otherwise("region").alias("region")
    ).write_csv(tmp_path / "table.csv")
    with running(tmp_path, "agreement.json") as collector:
        asked = [
            "send",
            str(tmp_path / "table.csv"),
            "--to",
            collector.address,
            "--client",
            "who",
            "--secret",
            str(tmp_path / "secret"),
        ]
        columns = ["--value", "region", "--value", "amount", "--value", "trips"]
        ran = CliRunner().invoke(app, [*asked, *columns, "--budget", "2", "--json"])
        assert ran.exit_code == 0, ran.output
        assert json.loads(ran.stdout)["counted"] == 250  # who has no row of the survey answers too: nobody sees that
        refused = CliRunner().invoke(app, [*asked, "--value", "region"])
        assert refused.exit_code != 0
        assert "a survey of 'region', 'amount', 'trips'" in " ".join(refused.output.split())


@pytest.mark.parametrize(
    ("row", "number"),
    [
        ({"n": 1.0, "day": "2026-01-02"}, 1),
        ({"n": np.float64(4.0), "day": datetime.date(2026, 1, 1)}, 4),
        ({"n": np.int32(2), "day": np.datetime64("2026-01-03", "D")}, 2),
        ({"n": 3, "day": np.datetime64("2026-01-03T00:00", "ns")}, 3),
        ({"n": 1.5, "day": "2026-01-02"}, None),
        ({"n": float("nan"), "day": "2026-01-02"}, None),
        ({"n": float("inf"), "day": "2026-01-02"}, None),
        ({"n": 1, "day": np.datetime64("2026-01-03T01:00", "ns")}, None),
        ({"n": 1, "day": np.datetime64("NaT")}, None),
        ({"n": True, "day": "2026-01-02"}, None),
    ],
)
def test_a_device_reads_values_as_tables_and_browsers_do(row: dict[str, Any], number: int | None) -> None:
    columns = Survey({"n": 5, "day": Dates("2026-01-01", "2026-01-03")}, [shares("n")]).columns
    (found,) = columns.find_row_numbers_of_records([row])
    assert (found % 5 if found >= 0 else None) == number
