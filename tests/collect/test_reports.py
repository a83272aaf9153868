"""Collections of reports: each client is counted once, what is kept is as long as their table, and estimates are those of all reports."""

import io
import json
import re
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet import DiscreetError
from discreet.agreement import Agreement
from discreet.cli._app import app
from discreet.cli._design import _read_counts_of_file_or_store
from discreet.client._protocol import ARROW
from discreet.collect import export, open_store
from discreet.collect._catalogue import labelled_agreement_coding_and_sampler
from discreet.collect._counting import KEPT, MOST_GROUPS, Arrival, Verdict, reports_as_signed_integers, text_digest
from discreet.collect._samples import ReportReader
from discreet.collect._store import Store
from discreet.errors import StoreError
from discreet.estimation import reported_population
from discreet.mechanisms import AffineBlocks, BlockFamily, ReportCounts, ReportSampler
from discreet.mechanisms._reports._blocks import MaskedSubsets, RankedSubsets, SingleOutcomes
from tests.collect.behaviour import DAY, agreed
from tests.collect.running import one, running
from tests.javascript.browser import chromium, new_context, until, watched

FAMILIES: list[BlockFamily] = [
    MaskedSubsets(64, 17),  # half of the masks are past 2^63
    MaskedSubsets(7, 2),
    RankedSubsets(90, 3),
    AffineBlocks(104, 107, 1, 28),
    AffineBlocks(1000, 11, 3, 3),
    SingleOutcomes(5),
]


def sampler_of(blocks: BlockFamily) -> ReportSampler:
    return ReportSampler(dc.Simplex(blocks.size), epsilon=1.0, blocks=blocks)


def arrivals(reports: Any, first: int = 0) -> list[Arrival]:
    """One report of each of so many clients."""
    stored = reports_as_signed_integers(np.asarray(reports, dtype=np.uint64)).tolist()
    return [
        Arrival(text_digest("client", str(first + i)), text_digest("key", str(first + i)), each)
        for i, each in enumerate(stored)
    ]


@pytest.mark.parametrize("blocks", FAMILIES, ids=lambda blocks: f"{blocks.name}-{blocks.size}")
def test_the_store_holds_the_table_of_all_reports(either_store: Store, blocks: BlockFamily) -> None:
    sampler = sampler_of(blocks)
    agreement = Agreement.of(sampler)
    either_store.add(agreement)
    reports = sampler.release_records(np.arange(300) % blocks.size)
    sent = arrivals(reports)
    done = 0
    for many in (1, 1, 30, 40, 100, 128):
        assert either_store.count_arrivals(agreement.id, 1, sent[done : done + many], DAY) == [Verdict.COUNTED] * many
        done += many
        expected = ReportCounts(sampler).add(reports[:done])
        assert either_store.outcome_counts(agreement.id, 1).tolist() == expected.table.tolist()
        found = ReportCounts.from_table(sampler, either_store.outcome_counts(agreement.id, 1))
        assert (found.reports, found.supports().tolist()) == (done, expected.supports().tolist())
    assert either_store.count_arrivals(agreement.id, 1, sent, DAY) == [Verdict.AGAIN] * 300
    other = [Arrival(each.client, text_digest("other key"), each.outcome) for each in sent[:3]]
    assert either_store.count_arrivals(agreement.id, 1, other, DAY) == [Verdict.SPOKEN] * 3
    assert either_store.outcome_counts(agreement.id, 1).tolist() == expected.table.tolist()


def test_what_is_no_report_is_refused_and_nothing_is_counted(either_store: Store) -> None:
    sampler = sampler_of(AffineBlocks(104, 107, 1, 28))
    agreement = Agreement.of(sampler)
    either_store.add(agreement)
    for wrong in (sampler.blocks.block_count, -1):
        with pytest.raises(DiscreetError, match="no report"):
            either_store.count_arrivals(
                agreement.id,
                1,
                [Arrival(text_digest("a"), text_digest("k"), 3), Arrival(text_digest("b"), text_digest("k"), wrong)],
                DAY,
            )
    assert not either_store.outcome_counts(agreement.id, 1).any()


def test_reports_that_are_pushed_out_of_the_pool_are_counted_as_reports(either_store: Store) -> None:
    """More agreements than a pool holds: the one that waits for the longest is counted while another one's samples come."""
    sampler = sampler_of(MaskedSubsets(64, 17))
    reported = Agreement.of(sampler)
    reports = sampler.release_records(np.arange(5))
    either_store.add(reported)
    either_store.count_arrivals(reported.id, 1, arrivals(reports), DAY)
    for number in range(MOST_GROUPS + 1):
        plain = agreed(3, purpose=str(number))
        either_store.add(plain)
        either_store.count_arrivals(plain.id, 1, [Arrival(text_digest("a"), text_digest("k"), 2)], DAY)
        assert either_store.outcome_counts(plain.id, 1).tolist() == [0, 0, 1]
    assert either_store.outcome_counts(reported.id, 1).tolist() == ReportCounts(sampler).add(reports).table.tolist()


def test_what_is_kept_does_not_grow_with_the_reports(tmp_path: Path) -> None:
    """Rows of counts: as many as the table is long, at most. The pool: fewer than 2 KEPT. The rest is who has spoken."""
    sampler = sampler_of(AffineBlocks(104, 107, 1, 28))
    agreement = Agreement.of(sampler)
    store: Any = open_store(tmp_path / "store.db")
    store.add(agreement)
    kept = []
    for turn in range(3):
        store.count_arrivals(
            agreement.id, 1, arrivals(sampler.release_records(np.arange(2000) % 104), 2000 * turn), DAY
        )
        with store._reader.transaction() as database:
            kept.append(database.execute("SELECT count(*) FROM counted").fetchone()[0])
            (content,) = database.execute("SELECT content FROM pool").fetchone()
            assert len(content) <= 1 + 24 + 8 * 2 * KEPT
    assert kept == [107, 107, 107]
    store.close()


def test_a_pool_with_what_is_no_report_is_damage(tmp_path: Path) -> None:
    sampler = sampler_of(AffineBlocks(104, 107, 1, 28))
    agreement = Agreement.of(sampler)
    store: Any = open_store(tmp_path / "store.db")
    store.add(agreement)
    store.count_arrivals(agreement.id, 1, arrivals([5]), DAY)
    with store._transaction_without_samples() as database:
        database.execute("UPDATE pool SET content = ?", (store._seal.encode_pool({(1, 1): [10**9]}),))
    with pytest.raises(StoreError, match="damaged"):
        store.outcome_counts(agreement.id, 1)
    store.close()


def reports_agreed(folder: Path, domain: Any, epsilon: float = 1.0) -> tuple[ReportSampler, Agreement]:
    sampler = ReportSampler(dc.Simplex(domain), epsilon=epsilon)
    agreement = Agreement.of(sampler, purpose="tests")
    agreement.write(folder / "agreement.json")
    return sampler, agreement


@pytest.mark.slow
def test_a_service_takes_reports_and_tells_what_they_tell(tmp_path: Path) -> None:
    sampler, agreement = reports_agreed(tmp_path, 64)
    reports = sampler.release_records(np.arange(120) % 9)
    with running(tmp_path, "agreement.json") as collector:
        assert collector.get("/estimate").json["notes"] == ["there are no reports yet"]
        first = one(agreement, "c0", str(reports[0]))
        assert collector.send(first).json == {"counted": 1, "again": 0, "refused": []}
        assert collector.send(first).json == {"counted": 0, "again": 1, "refused": []}
        rows = [{"client": f"c{i}", "key": f"key-c{i}", "sample": str(each)} for i, each in enumerate(reports[:60])]
        assert collector.send({"agreement": agreement.id, "round": 1, "samples": rows}).json["counted"] == 59
        table = pa.table(
            {"client": [f"c{i}" for i in range(60, 120)], "key": ["k"] * 60, "sample": pa.array(reports[60:])}
        )
        body = io.BytesIO()
        with pa.ipc.new_stream(body, table.schema.with_metadata({"agreement": agreement.id, "round": "1"})) as stream:
            stream.write_table(table.replace_schema_metadata({"agreement": agreement.id, "round": "1"}))
        assert collector.send(body.getvalue(), ARROW).json == {"counted": 60, "again": 0, "refused": []}
        wrong = [
            int(reports[0]),
            "-1",
            "01",
            "",
            " 1",
            "1.0",
            "x",
            None,
            True,
            str(2**64),
            str(2**64 - 1),
            "0",
            [],
            "9" * 5000,
        ]
        for number, sample in enumerate(wrong):
            answer = collector.send(one(agreement, f"w{number}", sample))
            assert (answer.status, "sample is not a report of the agreement" in answer.json["error"]) == (422, True), (
                sample
            )
        said = collector.get("/estimate").json
        assert collector.stop() == 0
    found = reported_population(sampler, reports=reports)
    assert (said["reports"], said["mechanism"], said["identifiable"]) == (120, "reports", True)
    assert [share["reports"] for share in said["shares"]] == found.counts.tolist()
    for share, low, estimate, high in zip(
        said["shares"], found.law.low, found.law.estimate, found.law.high, strict=True
    ):
        assert (share["law"]["low"], share["law"]["estimate"], share["law"]["high"]) == (low, estimate, high)
    assert said["margin_at_worst"] == found.margin_at_worst
    assert said["times_the_least_variance"] == sampler.excess
    assert said["statistics"] == [asdict(found.statistic(name)) for name in ("mean", "median")]
    for ending in ("parquet", "csv", "arrow"):
        out = tmp_path / f"out.{ending}"
        with closing(open_store(tmp_path / "samples.db")) as store:
            assert (export(store, out).samples, out.exists()) == (120, True)
        again = CliRunner().invoke(
            app,
            ["estimate", str(out), "--agreement", str(tmp_path / "agreement.json"), "--statistic", "median", "--json"],
        )
        exported = json.loads(again.stdout)
        assert (exported["shares"], exported["notes"]) == (said["shares"], [])
        assert exported["statistics"] == said["statistics"][1:]
    with pytest.raises(DiscreetError, match="is on reports, and a design is learned from samples"):
        _read_counts_of_file_or_store(str(tmp_path / "samples.db"), None)


def test_tables_that_no_reports_add_up_to_are_refused(tmp_path: Path) -> None:
    _, agreement = reports_agreed(tmp_path, 104)
    other = Agreement.of(ReportSampler(dc.Simplex(104), epsilon=2.0))
    table = pl.DataFrame({"place": range(107), "counted": [28] * 107, "agreement": [agreement.id] * 107})

    def estimated(rows: pl.DataFrame, *options: str) -> str:
        rows.write_parquet(tmp_path / "table.parquet")
        asked = ["estimate", str(tmp_path / "table.parquet"), "--agreement", str(tmp_path / "agreement.json"), *options]
        return " ".join(CliRunner().invoke(app, asked).output.split())

    assert "107 reports" in estimated(table.sample(fraction=1.0, shuffle=True))
    assert "was made under agreement" in estimated(table.with_columns(agreement=pl.lit(other.id)))
    for wrong in (table[:-1], table.with_columns(place=pl.lit(3)), table.with_columns(counted=pl.lit("x"))):
        assert "is not a table of reports under agreement" in estimated(wrong)
    for wrong in (table.with_columns(counted=pl.lit(27)), table.with_columns(counted=-pl.col("counted"))):
        assert "not one that so many reports of this sampler give" in estimated(wrong)


def test_more_outcomes_than_a_service_lists_are_refused_by_name() -> None:
    agreement = Agreement.of(ReportSampler(dc.Simplex(20_001), epsilon=1.0))
    with pytest.raises(DiscreetError, match=r"on reports of 20,001 outcomes.*discreet estimate"):
        labelled_agreement_coding_and_sampler(agreement)


TOWNS = [f"<b>town</b> {number}" for number in range(64)]
SHOWN = """[...document.querySelectorAll('[data-estimate]')].map(({ dataset: { samples, estimate, low, high } }) =>
  [samples, estimate, low, high].map(Number))"""


def samples_named(page: Any) -> list[str]:
    """Sentences on a page of reports that speak of samples, but for the one that says what a report is not, and the field of that name."""
    sentences = re.split(r"[.:\n]", page.locator("body").inner_text())
    return [
        each
        for each in sentences
        if "sample" in each.lower() and not re.search('not a sample of your|"sample"|/samples', each)
    ]


@pytest.mark.slow
def test_numbers_that_are_reported_have_a_mean_and_a_median_on_the_live_page(tmp_path: Path) -> None:
    sampler, agreement = reports_agreed(tmp_path, 104)
    reports = sampler.release_records(np.arange(400) % 50)
    rows = [{"client": f"c{i}", "key": f"key-c{i}", "sample": str(each)} for i, each in enumerate(reports)]
    with running(tmp_path, "agreement.json") as collector, chromium() as browser:
        assert collector.send({"agreement": agreement.id, "round": 1, "samples": rows}).json["counted"] == 400
        page = new_context(browser).new_page()
        complaints = watched(page)
        page.goto(f"{collector.address}/")
        until(page, "document.getElementById('samples').dataset.number === '400'")
        shown = page.locator("#statistics").inner_text()
        assert "Mean" in shown
        assert f"{reported_population(sampler, reports=reports).statistic('median').estimate:g}; from" in shown
        assert "1.001 times the people that the best private reports need" in page.locator("#trust").inner_text()
        assert complaints() == []


@pytest.mark.slow
def test_people_take_part_by_reports_in_a_browser(tmp_path: Path) -> None:
    """Masks of 64 bits, which no float holds: a visitor sees the outcomes that are named, sends that very report, and is counted once."""
    sampler, _ = reports_agreed(tmp_path, TOWNS)
    lengths, sent = set(), []
    with running(tmp_path, "agreement.json") as collector, chromium() as browser:
        for visitor in range(3):
            page = new_context(browser).new_page()
            complaints, bodies = watched(page), list[str]()
            page.on(
                "request", lambda request, to=bodies: to.append(request.post_data) if request.method == "POST" else None
            )
            page.goto(f"{collector.address}/take-part")
            until(page, "document.documentElement.dataset.ready")
            asked = page.locator("#asked").inner_text()
            assert "One report, and" in asked
            assert "The named outcomes may include yours" in asked
            page.locator("#entry").fill(TOWNS[5])
            page.locator("#add button").click()
            assert page.locator("#drawn-heading").inner_text() == "What your report may name"
            chances = sampler.chances
            assert (
                page.locator("#drawn .told").all_text_contents()[0] == f"100\u00a0% → {100 * chances.inside:.3g}\u00a0%"
            )
            assert (
                page.locator("#drawn .told").all_text_contents()[1] == f"0\u00a0% → {100 * chances.outside:.3g}\u00a0%"
            )
            page.locator("#draw").click()
            page.wait_for_selector("#sample-card:not([hidden])")
            shown = json.loads(page.locator("#request").inner_text())
            held = sampler.outcomes_of(int(shown["sample"])).tolist()
            assert bodies == []  # nothing leaves before it is shown
            assert re.findall(r"<b>town</b> \d+", page.locator("#sample").inner_text()) == held
            told = page.locator("#sample-told").inner_text()
            assert told.startswith(f"This is your report. It names {len(held)} outcomes, and yours may be among them.")
            assert samples_named(page) == []
            for width in (390, 1440):
                page.set_viewport_size({"width": width, "height": 900})
                assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.reload()  # and still the same one
            until(page, "!document.getElementById('sample-card').hidden")
            assert json.loads(page.locator("#request").inner_text()) == shown
            page.locator("#send").click()
            page.wait_for_selector("#receipt-card:not([hidden])")
            assert [json.loads(body) for body in bodies] == [shown]
            lengths.add(len(bodies[0].encode()))
            sent.append(int(shown["sample"]))
            assert collector.get("/estimate").json["reports"] == visitor + 1
            page.locator("#send").click()
            until(page, "document.getElementById('thanks').textContent.includes('arrived before')")
            assert collector.get("/estimate").json["reports"] == visitor + 1
            assert complaints() == []
        said = collector.get("/estimate").json
        page = new_context(browser).new_page()
        complaints = watched(page)
        page.goto(f"{collector.address}/")
        until(page, "document.getElementById('samples').dataset.number === '3'")
        page.locator("#all").click()
        expected = [
            [each["reports"], *(each["law"][end] for end in ("estimate", "low", "high"))] for each in said["shares"]
        ]
        assert page.evaluate(SHOWN) == sorted(expected, key=lambda each: -each[1])
        assert page.locator("#many-told").inner_text() == "reports"
        assert "names several outcomes at once" in page.locator("#what").inner_text()
        assert "as many people as the best private reports need" in page.locator("#trust").inner_text()
        assert not page.locator("#statistics").is_visible()  # of labels there are none
        assert samples_named(page) == []
        assert complaints() == []
        assert collector.said == ""
    assert len(lengths) == 1
    assert [each["reports"] for each in said["shares"]] == ReportCounts(sampler).add(sent).supports().tolist()


@pytest.mark.parametrize("blocks", FAMILIES, ids=lambda blocks: f"{blocks.name}-{blocks.size}")
def test_reports_are_read_alike_from_json_and_from_every_type_of_arrow(blocks: BlockFamily) -> None:
    read = ReportReader(sampler_of(blocks))
    numbers = [
        0,
        1,
        3,
        5,
        7,
        100,
        127,
        blocks.block_count - 1,
        blocks.block_count,
        blocks.largest_report,
        blocks.largest_report + 1,
        2**63,
        2**64 - 1,
    ]
    numbers += blocks.reports_of_ranks(np.arange(min(blocks.block_count, 50))).tolist()
    numbers = [each for each in numbers if each < 2**64]
    good = blocks.are_valid_reports(np.array(numbers, dtype=np.uint64)).tolist()
    found = read.stored_numbers_from_json([str(each) for each in numbers])
    assert [int(each) for each in found.view(np.uint64)] == [
        n if g else 2**64 - 1 for n, g in zip(numbers, good, strict=True)
    ]
    assert read.stored_numbers_from_column(pa.array(numbers, pa.uint64())).tolist() == found.tolist()
    for kind in (pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.int64()):
        most = 2 ** (kind.bit_width - ("uint" not in str(kind))) - 1
        kept = [place for place, each in enumerate(numbers) if each <= most]
        column = pa.array([numbers[place] for place in kept], kind)
        assert read.accepts_column_type(kind)
        assert read.stored_numbers_from_column(column).tolist() == found[kept].tolist()
        if "uint" not in str(kind):
            assert read.stored_numbers_from_outcome_numbers(
                pa.array([-1, -(2 ** (kind.bit_width - 1))], kind)
            ).tolist() == [
                -1,
                -1,
            ]
    for kind in (pa.float64(), pa.string(), pa.bool_(), pa.dictionary(pa.int8(), pa.string())):
        assert not read.accepts_column_type(kind)
    wrong: list[Any] = [
        0,
        3,
        -1,
        1.0,
        True,
        None,
        [],
        {},
        "",
        "+1",
        "1 ",
        "١",
        "1e3",
        "00",
        str(2**64),
        "9" * 20,
        "9" * 21,
    ]
    assert set(read.stored_numbers_from_json(wrong).tolist()) == {-1}
