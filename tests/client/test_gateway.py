"""A gateway sends one sample of each client of a table, the same however often, and each is counted once."""

import io
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import discreet as dc
from discreet.agreement import Agreement
from discreet.client import Sent, _gateway as gateway, _protocol as protocol, send_table
from discreet.errors import CollectorError
from discreet.ledger import PopulationLedger
from discreet.tables import Columns, read_secret, refuse_unreadable_table, sample, source_of_table, write_secret
from tests.client.hostile import hung_up, offering, replies, said, serving
from tests.collect.running import agreed, running

COLOURS = ["red", "green", "blue"]
AGREED = Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=1.0))


def table(clients: int = 100, first: str = "red") -> pl.DataFrame:
    return pl.DataFrame({"who": [*range(clients)] * 2, "what": [first, "green"] * clients})


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    write_secret(tmp_path / "secret")
    return tmp_path / "secret"


def sent(address: str, secret: Path, rows: Any = None, **how: Any) -> Sent:
    given = {
        "client": "who",
        "value": "what",
        "secret": secret,
        "patience": 0.0,
        "timeout": 120.0,
        "budget": 1.0,
        **how,
    }
    if "ledger" in how:
        given["budget"] = None
    return send_table(address, table() if rows is None else rows, **given)


@pytest.mark.slow
def test_every_client_is_counted_once_with_the_sample_of_the_engine(tmp_path: Path, secret: Path) -> None:
    agreement = agreed(tmp_path, COLOURS)
    progress: list[tuple[int, int]] = []
    with running(tmp_path, "agreement.json") as collector:
        first = sent(collector.address, secret, progress=lambda *told: progress.append(told))
        assert first == Sent(agreement.id, agreement.id, 1, 100, 0, 0)
        assert progress == [(100, 100)]
        assert sent(collector.address, secret).again == 100
        assert sent(collector.address, secret, table(100).sample(fraction=1.0, shuffle=True, seed=1)).again == 100
        told = collector.get("/estimate").json
        assert (
            sent(collector.address, secret, table(first="blue")).again == 100
        )  # no refusal tells that the data have changed
        write_secret(tmp_path / "another")
        assert sent(collector.address, tmp_path / "another").counted == 100  # names are made of the secret
    books = PopulationLedger(f"{secret}.ledger", secret)
    drawn = sample(table(), client="who", value="what", agreement=agreement, ledger=books)
    counts = pl.DataFrame(drawn.select(["sample"]))["sample"].value_counts()
    assert dict(counts.iter_rows()) == {row["outcome"]: row["samples"] for row in told["shares"] if row["samples"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sample", "agreement", "client"])
def test_a_column_of_clients_may_have_the_name_of_one_of_ours(tmp_path: Path, secret: Path, name: str) -> None:
    """The engine publishes it under another name then, and names are made of the clients all the same."""
    agreed(tmp_path, COLOURS)
    with running(tmp_path, "agreement.json") as collector:
        assert sent(collector.address, secret, table().rename({"who": name}), client=name).counted == 100


@pytest.mark.slow
def test_a_collection_that_goes_on_is_for_other_clients(tmp_path: Path, secret: Path) -> None:
    first = agreed(tmp_path, COLOURS)
    with running(tmp_path, "agreement.json") as collector:
        assert sent(collector.address, secret).counted == 100
        assert collector.stop() == 0
    second = agreed(tmp_path, COLOURS, name="second.json", purpose="the second")
    with running(tmp_path, "second.json", "--follows", first.id, port=collector.port) as collector:
        with pytest.raises(dc.DiscreetError, match=f"agreement={first.id}"):
            sent(collector.address, secret)
        assert sent(collector.address, secret, agreement=first.id).again == 100
        write_secret(tmp_path / "another")
        assert sent(collector.address, tmp_path / "another", agreement=tmp_path / "second.json").agreement == second.id


@pytest.mark.slow
def test_a_ledger_pays_and_answers_whatever_the_data(tmp_path: Path, secret: Path) -> None:
    agreed(tmp_path, COLOURS)
    books = PopulationLedger.create(tmp_path / "books", budget=1.0, secret=secret)
    with running(tmp_path, "agreement.json") as collector:
        assert sent(collector.address, secret, ledger=books).counted == 100
        assert sent(collector.address, secret, table(first="blue"), ledger=books).again == 100
        with pytest.raises(dc.LedgerError, match="serves another ledger"):
            sent(collector.address, secret)
        assert collector.stop() == 0
    first = Agreement.read(tmp_path / "agreement.json")
    agreed(tmp_path, COLOURS, name="second.json", purpose="the second")
    with running(tmp_path, "second.json", "--follows", first.id, port=collector.port) as collector:
        with pytest.raises(dc.DiscreetError, match="a client answers once"):
            sent(collector.address, secret, ledger=books)
        agreed(tmp_path, COLOURS, name="apart.json", purpose="apart")
    with (
        running(tmp_path, "apart.json", "--store", "apart.db") as collector,
        pytest.raises(dc.BudgetError, match="would spend more"),
    ):
        sent(collector.address, secret, ledger=books)


@pytest.mark.slow
def test_a_gateway_is_known_by_its_token(tmp_path: Path, secret: Path) -> None:
    agreed(tmp_path, COLOURS)
    (tmp_path / "gateways").write_text("token-of-a-gateway\n")
    (tmp_path / "gateways").chmod(0o600)
    with running(tmp_path, "agreement.json", "--gateways", "gateways") as collector:
        with pytest.raises(CollectorError, match="--gateway-token-file"):
            sent(collector.address, secret)
        with pytest.raises(CollectorError, match="only from enrolled clients: 'the Authorization header"):
            sent(collector.address, secret, token="token-of-nobody-x")
        assert sent(collector.address, secret, token="token-of-a-gateway").counted == 100


def test_batches_are_sent_until_they_are_answered_and_always_alike(
    tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "_BATCH", 40)
    busy = [said(200, {"counted": 40, "again": 0, "refused": []}), hung_up, said(503)]
    with serving(replies(AGREED, samples=busy)) as server:
        with pytest.raises(
            CollectorError, match="40 of 100 samples of round 1 are acknowledged; run the same again with round=1 "
        ):
            sent(server.address, secret, patience=1.0)
        before = [read(each.body) for each in server.asked if each.path == protocol.SAMPLES]
        server.asked.clear()
        answers = [(40, 0, []), (30, 5, [0, 7, 8, 9, 39]), (20, 0, [])]
        said_now = [said(200, {"counted": new, "again": again, "refused": refused}) for new, again, refused in answers]
        server.replies[protocol.SAMPLES] = said_now
        assert sent(server.address, secret) == Sent(AGREED.id, AGREED.id, 1, 90, 5, 5)
        after = [read(each.body) for each in server.asked if each.path == protocol.SAMPLES]
        headers = [each.headers for each in server.asked if each.path == protocol.SAMPLES]
    assert before[0].equals(after[0])
    assert all(each.equals(after[1]) for each in before[1:])
    assert [each.num_rows for each in after] == [40, 40, 20]
    assert all("authorization" not in each and each["content-type"] == protocol.ARROW for each in headers)
    whole = pa.concat_tables(after).to_pydict()
    held = read_secret(secret).value
    assert set(whole["client"]) == {
        protocol.client_name_in_collection(AGREED.id, held, str(number), address=server.address)
        for number in range(100)
    }
    assert whole["key"] == [protocol.sample_idempotency_key(name, AGREED.id, 1) for name in whole["client"]]


@pytest.mark.slow
def test_long_labels_take_no_room(tmp_path: Path, secret: Path) -> None:
    long = ["\u00e4" * 50_000, "\u00f6" * 50_000]
    agreed(tmp_path, long)
    rows = pl.DataFrame({"who": range(400), "what": [long[number % 2] for number in range(400)]})
    with running(tmp_path, "agreement.json") as collector:
        assert sent(collector.address, secret, rows).counted == 400


def read(body: bytes) -> pa.Table:
    found = pa.ipc.open_stream(io.BytesIO(body)).read_all()
    assert found.schema.metadata == {b"agreement": AGREED.id.encode(), b"round": b"1", b"samples": b"numbers"}
    return found


def test_nothing_is_released_before_all_is_known_to_be_right(tmp_path: Path, secret: Path) -> None:
    missing: Any = None
    dear = Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=11.0))
    with serving(replies(dear)) as server:
        with pytest.raises(dc.DiscreetError, match="epsilon = 11, more than the 10 allowed"):
            sent(server.address, secret)
        with pytest.raises(CollectorError, match="round = 2 is not open"):
            sent(server.address, secret, round=2)
        with pytest.raises(CollectorError, match="does not collect under"):
            sent(server.address, secret, agreement=AGREED)
        with pytest.raises(dc.DiscreetError, match="secret"):
            send_table(server.address, table(), client="who", value="what", secret=missing)
        assert [each for each in server.asked if each.method == "POST"] == []
    with serving(replies(AGREED)) as server:
        for wrong in (
            {"value": "colour"},
            {"client": "name"},
            {"nulls": "x"},
            {"budget": 2.0},
            {"notify": 5},
            {"progress": "yes"},
            {"rows": pl.DataFrame({"who": [1, None], "what": ["red", "red"]})},
            {"rows": pl.DataFrame({"who": [1, 2], "what": ["red", None]})},
            {"rows": pl.DataFrame({"who": [1], "what": ["red"], "n": [-1]}), "count": "n"},
        ):
            with pytest.raises(dc.DiscreetError):
                sent(server.address, secret, **wrong)
        assert server.asked == []  # the collector cannot know that anything was wrong
        write_secret(tmp_path / "another")
        for wrong in ({"notify": 5}, {"progress": 5}):
            with pytest.raises(dc.DiscreetError, match="= 5 cannot be called"):
                sent(server.address, tmp_path / "another", **wrong)
        assert not (tmp_path / "another.ledger").exists()
        with pytest.raises(dc.LedgerError, match="say what all samples of a client together may cost"):
            sent(server.address, tmp_path / "another", budget=None)
        assert server.asked == []
        for _ in range(2):
            with pytest.raises(dc.BudgetError, match="a sample costs epsilon = 1, and a client's whole budget is"):
                sent(server.address, tmp_path / "another", budget=0.5, agreement=AGREED)
        assert not (tmp_path / "another.ledger").exists()  # which would keep a budget that pays for nothing


def stop(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("discreet.tables.Release.table", "may be paid for"),
        ("discreet.ledger.PopulationLedger.destination_of_round", "is paid for"),
        ("discreet.client._gateway._append_outcome_number_column", "is paid for"),
        ("discreet.client._gateway.protocol.client_name_in_collection", "is paid for"),
        ("discreet.client._collector.Collector.send_samples", "is paid for"),
        ("progress", "is paid for"),
    ],
)
def test_an_interruption_names_the_round_wherever_it_comes(
    secret: Path, monkeypatch: pytest.MonkeyPatch, place: str, says: str
) -> None:
    """Only one during a request did. Without its round, the next run paid for another once that was open."""
    if place != "progress":
        monkeypatch.setattr(place, stop)
    behaviour = replies(AGREED, samples=said(200, {"counted": 100, "again": 0, "refused": []}))
    with serving(behaviour) as server, pytest.raises(KeyboardInterrupt) as caught:
        sent(server.address, secret, progress=stop)
    assert f"(round 1 {says}: after an interruption run the same again with round=1 (--round 1))" in str(caught.value)


ROWS = [
    pl.DataFrame({"who": [1, 2, 3, 3], "what": ["red", "green", "blue", "blue"]}),
    pl.DataFrame({"who": [1, 2, 3, 3], "what": ["red", "violet", "blue", "no colour"]}),
    pl.DataFrame({"who": [1, 2, 3, 3], "what": ["violet", "violet", "violet", "violet"]}),
    pl.DataFrame({"who": [1, 2, 3, 3], "what": ["a label of a length that no other has", "", "red", "red"]}),
]


@pytest.mark.parametrize("other", [None, "blue"])
def test_requests_do_not_depend_on_what_clients_hold(tmp_path: Path, other: str | None) -> None:
    """Values outside made a table an error, which the collector saw as a request that does not come."""
    agreed = Agreement.of(dc.OptimalSampler(dc.Simplex(["red", "blue", "a long colour"]), epsilon=1.0), other=other)
    traces = []
    for place, rows in enumerate(ROWS):
        write_secret(tmp_path / f"{place}")
        with serving(replies(agreed, samples=said(200, {"counted": 3, "again": 0, "refused": []}))) as server:
            assert sent(server.address, tmp_path / f"{place}", rows).samples == 3
            traces.append([(each.method, each.path, len(each.body)) for each in server.asked])
    assert all(trace == traces[0] for trace in traces)


def test_no_column_is_refused_for_the_domain_that_is_offered(tmp_path: Path) -> None:
    """Whole floats, texts and truth values under labels, numbers and intervals: a column's type and what it lacks show nowhere."""
    columns = [[1, 2, 3], [1.0, 2.0, None], [0.5, 2.0, 7.0], ["1", "x", None], [True, False, None], [None, None, None]]
    families: list[Any] = [
        dc.Simplex(4),
        dc.Simplex([1, 2, 5]),
        dc.Simplex(["1", "x"]),
        dc.Simplex(dc.Interval(0, 4, cells=4)),
    ]
    for number, family in enumerate(families):
        agreed, traces = Agreement.of(dc.OptimalSampler(family, epsilon=1.0)), []
        for place, values in enumerate(columns):
            write_secret(tmp_path / f"{number} {place}")
            with serving(replies(agreed, samples=said(200, {"counted": 3, "again": 0, "refused": []}))) as server:
                rows = pl.DataFrame({"who": ["a", "b", "c"], "what": values}, strict=False)
                assert sent(server.address, tmp_path / f"{number} {place}", rows, nulls="drop").samples == 3
                traces.append([(each.method, each.path, len(each.body)) for each in server.asked])
        assert all(trace == traces[0] for trace in traces)


def test_amounts_that_could_overflow_are_refused_before_anybody_is_asked(tmp_path: Path, secret: Path) -> None:
    """A client whose counts overflow under one domain and not under another told, by halving, what it holds."""
    with serving(replies(AGREED)) as server:
        for word, amounts in (("count", [2**62, 2**62]), ("weight", [1e308, 1.1e308])):
            rows = pl.DataFrame({"who": [1, 1], "what": ["red", "violet"], "n": amounts})
            with pytest.raises(dc.DiscreetError, match="adds up to"):
                sent(server.address, secret, rows, **{word: "n"})
        assert server.asked == []


@pytest.mark.parametrize("name", ["true", "1.0"])
def test_json_that_names_no_client_is_refused_before_anybody_is_asked(tmp_path: Path, secret: Path, name: str) -> None:
    """true and "true" became one client, and 1 and 1.0 two, each with a budget."""
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"who": "a", "what": "red"}}\n{{"who": {name}, "what": "red"}}\n')
    with serving(replies(AGREED)) as server:
        with pytest.raises(dc.DiscreetError, match="line 2: 'who' is a"):
            sent(server.address, secret, path)
        assert server.asked == []
    with pytest.raises(dc.DiscreetError, match="line 2: 'who' is a"):
        refuse_unreadable_table(source_of_table(path), Columns(client="who", value="what"))


def test_a_file_that_changes_under_way_changes_nothing(tmp_path: Path, secret: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("who,what\n1,red\n2,blue\n")

    def meanwhile(server: Any, line: Any) -> None:
        path.write_text("who,what\n1,red\n,blue\n")
        said(200, offering(AGREED))(server, line)

    answers = replies(AGREED, collection=meanwhile, samples=said(200, {"counted": 2, "again": 0, "refused": []}))
    with serving(answers) as server:
        assert sent(server.address, secret, path).samples == 2


def test_names_and_samples_are_of_one_secret(tmp_path: Path, secret: Path) -> None:
    """Under the ledger of one secret and another secret, the same samples were sent under other names, and counted twice."""
    books = PopulationLedger.create(tmp_path / "books", budget=1.0, secret=secret)
    write_secret(tmp_path / "other")
    with serving(replies(AGREED)) as server:
        with pytest.raises(
            dc.LedgerError, match=r"secret is not the one that ledger .* was created with; give that one"
        ):
            sent(server.address, tmp_path / "other", ledger=books)
        with pytest.raises(dc.DiscreetError, match=r"open one with PopulationLedger\(folder, secret\)"):
            sent(server.address, secret, ledger=tmp_path / "books")
        assert server.asked == []


def test_first_runs_at_once_share_a_ledger(tmp_path: Path, secret: Path) -> None:
    answers: list[Any] = [said(200, {"counted": 10, "again": 0, "refused": []})]
    ends: list[object] = []

    def run(address: str) -> None:
        try:
            ends.append(sent(address, secret, table(10)).samples)
        except dc.DiscreetError as error:
            ends.append(str(error))

    with serving(replies(AGREED, samples=answers)) as server:
        threads = [threading.Thread(target=run, args=(server.address,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120.0)
    assert ends == [10] * 4


def test_clients_with_nothing_inside_release_from_the_reference(tmp_path: Path) -> None:
    weights = {"red": 97.0, "blue": 1.0, "green": 1.0, "black": 1.0}
    agreed = Agreement.of(dc.OptimalSampler(dc.Band(weights, lower=0.0, upper=20.0, any_client=True), epsilon=1.0))
    rows = pl.DataFrame({"who": [*range(300)], "what": ["violet"] * 300})
    drawn = sample(rows, client="who", value="what", agreement=agreed, outside="agreed")
    assert drawn.num_rows == 300
    assert sum(one == "red" for one in drawn.column("sample").to_pylist()) > 270
    mixed = pl.DataFrame({"who": [1, 1], "what": ["violet", "blue"], "n": [10**6, 1]})
    sure = Agreement.of(dc.OptimalSampler(dc.Simplex(list(weights)), epsilon=60.0))
    (found,) = (
        sample(mixed, client="who", value="what", count="n", agreement=sure, outside="agreed")
        .column("sample")
        .to_pylist()
    )
    assert found == "blue"  # the rest is left out
    named = Agreement.of(dc.OptimalSampler(dc.Simplex(list(weights)), epsilon=60.0), other="black")
    (found,) = (
        sample(mixed[:1], client="who", value="what", agreement=named, outside="agreed").column("sample").to_pylist()
    )
    assert found == "black"


def test_the_gateway_learns_how_many_values_were_outside(tmp_path: Path, secret: Path) -> None:
    """A table with every label misspelt was sent without a word, and each client had paid for noise."""
    rows = pl.DataFrame({"who": [1, 1, 2, 3, 3], "what": ["Red", "red", "violet", None, "blue"]})
    with serving(replies(AGREED, samples=said(200, {"counted": 3, "again": 0, "refused": []}))) as server:
        told = sent(server.address, secret, rows, nulls="drop")
    assert (told.samples, told.outside, told.without_records) == (3, 3, 1)


def test_a_chain_whose_links_are_left_out_is_bounded_by_the_budget(tmp_path: Path, secret: Path) -> None:
    """A collector that calls every agreement a new collection got 60 samples of each client, under unchanging names."""
    made = [
        Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=1.0), purpose=f"number {number}")
        for number in range(6)
    ]
    seen: list[set[str]] = []
    with serving(replies(made[0])) as server:
        for each in made:
            server.replies |= replies(each, samples=said(200, {"counted": 10, "again": 0, "refused": []}))
            server.asked.clear()
            if len(seen) < 3:
                sent(server.address, secret, table(10), budget=3.0)
                bodies = [one.body for one in server.asked if one.path == protocol.SAMPLES]
                seen.append(set(pa.ipc.open_stream(io.BytesIO(bodies[0])).read_all().column("client").to_pylist()))
            else:
                with pytest.raises(dc.BudgetError, match="would spend more than epsilon = 3"):
                    sent(server.address, secret, table(10), budget=3.0)
                assert [one.method for one in server.asked] == ["GET", "GET"]
    assert all(len(one & other) == 0 for place, one in enumerate(seen) for other in seen[:place])


def test_one_collector_s_samples_are_for_no_other(tmp_path: Path, secret: Path) -> None:
    answer = said(200, {"counted": 10, "again": 0, "refused": []})
    with serving(replies(AGREED, samples=answer)) as first, serving(replies(AGREED, samples=answer)) as second:
        sent(first.address, secret, table(10))
        with pytest.raises(dc.LedgerError, match="would be given the same samples"):
            sent(second.address, secret, table(10))
        assert [each.method for each in second.asked if each.method == "POST"] == []
        with pytest.raises(dc.LedgerError, match="a client answers once"):  # another column for the same question
            sent(first.address, secret, table(10).rename({"what": "that"}), value="that")


def test_two_runs_at_once_under_two_agreements_speak_once(tmp_path: Path, secret: Path) -> None:
    """Both look, find nothing and draw; then both want to charge."""
    second = Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=1.0), purpose="the second")
    rows = [
        {"agreement": AGREED.id, "follows": None, "rounds": 1, "open": [1], "purpose": ""},
        {"agreement": second.id, "follows": AGREED.id, "rounds": 1, "open": [1], "purpose": ""},
    ]
    told = said(200, offering(AGREED, agreement=second.id, agreements=rows))
    answer = said(200, {"counted": 10, "again": 0, "refused": []})
    books = PopulationLedger.create(tmp_path / "books", budget=5.0, secret=secret)
    both, charge = threading.Barrier(2, timeout=60.0), PopulationLedger.charge_clients_once
    ends: list[object] = []

    def slowly(self: Any, *words: Any, **more: Any) -> Any:
        both.wait()
        return charge(self, *words, **more)

    def run(agreement: Agreement, address: str) -> None:
        try:
            ends.append(sent(address, secret, table(10), agreement=agreement, ledger=books))
        except dc.LedgerError as error:
            ends.append(str(error))

    with serving(replies(AGREED, collection=told, samples=answer)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(PopulationLedger, "charge_clients_once", slowly)
        threads = [threading.Thread(target=run, args=(each, server.address)) for each in (AGREED, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120.0)
        posted = [each for each in server.asked if each.method == "POST"]
    assert sorted(isinstance(end, Sent) for end in ends) == [False, True], ends
    assert any("a client answers once" in str(end) for end in ends)
    assert len(posted) == 1
