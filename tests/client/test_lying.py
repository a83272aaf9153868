"""Collectors that lie in well-formed words, about the domain, the past and who they are: what a device says depends on none of it."""

import collections
import contextlib
import json
import os
import threading
import types
from pathlib import Path
from typing import Any

import pytest

import discreet as dc
from discreet.agreement import Agreement
from discreet.client import Client, Receipt, _client as client_module, _collector as collector, _protocol as protocol
from discreet.client._device_data import DeviceData, DeviceDraw
from discreet.client._protocol import CollectionStatement, CollectorKey
from discreet.errors import BudgetError, CollectorError, LedgerError
from discreet.ledger import Budget, Ledger
from discreet.ledger._client_ledger import Destination
from discreet.survey import Survey, SurveySampler, shares
from tests.client import lies
from tests.client.hostile import COUNTED, Server, hung_up, offering, replies, said, serving

COLOURS = ["red", "green", "blue"]
AGREED = Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=1.0))
OTHER = Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=0.5))
KEY, SECOND_KEY = CollectorKey(bytes(32)), CollectorKey(bytes([1]) * 32)


def device(address: str, folder: Path, **how: Any) -> Client:
    return Client(address, **{"ledger": folder / "ledger", "budget": 5.0, "patience": 0.0, "timeout": 120.0, **how})


def signed(agreement: Agreement, addresses: list[str], key: CollectorKey = KEY, **more: Any) -> dict[str, Any]:
    """A collection whose one agreement is signed for these addresses."""
    statement = CollectionStatement(
        agreement=agreement.id, collection=agreement.id, follows=None, addresses=tuple(addresses)
    )
    row = {"agreement": agreement.id, "follows": None, "rounds": 1, "open": [1], "purpose": ""}
    return offering(agreement, agreements=[{**row, "signed": key.sign(statement).document}], **more)


# a refusal is an answer


def test_no_offer_of_a_domain_tells_whether_a_value_is_in_it(tmp_path: Path) -> None:
    """Halving the domain at epsilon 0.001 found every secret by whether a sample came. Now one always comes, of one length."""
    for secret in range(8):
        low, high, seen = 0, 8, set()
        while high - low > 1:
            middle = (low + high) // 2
            labels = [f"value {number}" for number in range(low, middle)]
            asked = Agreement.of(dc.OptimalSampler(dc.Simplex([*labels, "nothing else"]), epsilon=0.001))
            with serving(replies(asked)) as server:
                receipt = device(server.address, tmp_path, ledger=tmp_path / f"{secret} {low} {high}").send(
                    records=[f"value {secret}"]
                )
                assert [each.method for each in server.asked] == ["GET", "GET", "POST"]
                seen.add(len(server.asked[-1].body))
            inside = low <= secret < middle
            assert (receipt.outside, receipt.problem == "") == (
                float(not inside),
                inside,
            )  # which the device's owner is told
            low, high = (low, middle) if inside else (middle, high)
        assert len(seen) <= 2  # of domains whose longest labels differ


@pytest.mark.parametrize(
    "given",
    [
        {"records": ["red"]},
        {"counts": [1, 2, 3]},
        {"p": [0.2, 0.3, 0.5]},
        {"rows": [{"value": 2}]},
        {"rows": [{"value": 3}]},
        {"rows": [{"other": 2}, {"value": "2"}]},
        {"rows": []},
    ],
)
def test_no_offer_of_a_survey_tells_what_a_device_holds(tmp_path: Path, given: dict[str, Any]) -> None:
    """A report comes for all data, with the same requests, of one length; only the device's owner is told what became of its rows."""
    asked = Agreement.of(SurveySampler(Survey({"value": 3}, [shares("value")]), epsilon=1.0))
    with serving(replies(asked)) as server:
        receipt = device(server.address, tmp_path).send(**given)
        assert [each.method for each in server.asked] == ["GET", "GET", "POST"]
        assert len(server.asked[-1].body) == len(collector.sample_request_body(asked.id, 1, "0" * 64, "0", 3))
    assert (receipt.outside, receipt.problem == "") == (
        (0.0, True) if given == {"rows": [{"value": 2}]} else (1.0, False)
    )


@pytest.mark.parametrize(
    ("given", "outside"),
    [
        ({"records": ["red", "pink", "pink", "pink"]}, 0.75),
        ({"records": ["pink"]}, 1.0),
        ({"records": []}, 1.0),
        ({"records": [["red"], {"red": 1}, None, 1.5]}, 1.0),
        ({"counts": {"red": 1, "pink": 3}}, 0.75),
        ({"counts": [1, 2]}, 1.0),
        ({"counts": [0, 0, 0]}, 1.0),
        ({"p": {"pink": 1.0}}, 1.0),
        ({"p": [0.5, 0.5]}, 1.0),
        ({"p": lambda x: x}, 1.0),
        ({"p": types.MappingProxyType({"red": 0.25, "pink": 0.75})}, 0.75),
    ],
)
@pytest.mark.parametrize("other", [None, "blue"])
def test_what_is_outside_follows_the_public_rule(
    tmp_path: Path, given: dict[str, Any], outside: float, other: str | None
) -> None:
    agreed = Agreement.of(dc.OptimalSampler(dc.Simplex(COLOURS), epsilon=40.0), other=other)
    with serving(replies(agreed)) as server:
        receipt = device(server.address, tmp_path, budget=40.0).send(**given)
    assert receipt.outside == outside
    assert receipt.problem
    if other is not None and "records" in given and given["records"]:
        assert receipt.sample == ("blue" if outside == 1.0 else receipt.sample)
        assert "other outcome" in receipt.problem


def test_a_value_past_the_end_of_an_interval_is_that_end(tmp_path: Path) -> None:
    cells = dc.Simplex(dc.Interval(0.0, 4.0, cells=4))
    agreed = Agreement.of(dc.OptimalSampler(cells, epsilon=40.0), rounds=3)
    opened = {"agreement": agreed.id, "follows": None, "rounds": 3, "open": [1, 2, 3], "purpose": ""}
    with serving(replies(agreed, collection=said(200, offering(agreed, agreements=[opened])))) as server:
        client = device(server.address, tmp_path, budget=120.0)
        assert client.send(records=[10**400, 7.0], round=1).sample > 3.0
        assert client.send(records=[float("-inf")], round=2).sample < 1.0
        assert client.send(records=[float("nan"), "a text", 2.5], round=3).sample == 2.5


def test_a_law_outside_the_band_of_the_linear_mechanism_is_moved_to_its_edge(tmp_path: Path) -> None:
    """That mechanism refuses whoever is not a member; a device must not."""
    sampler = dc.LinearSampler(dc.Band([4, 2, 1], lower=0.5, upper=1.4), epsilon=1.0)
    agreed = Agreement.of(sampler)
    with serving(replies(agreed)) as server:
        receipt = device(server.address, tmp_path).send(records=[2])
        assert len(server.samples()) == 1
    assert "moved to its edge" in receipt.problem
    assert receipt.outside == 0.0
    for number in range(2, 60):  # every law on outcomes is a member, and rounding makes none an outsider
        simplex = dc.LinearSampler(dc.Simplex(number), epsilon=1.0)
        assert DeviceData.from_arguments(None, [0], None).prepare_draw(simplex, Agreement.of(simplex)).problem == ""


def test_a_density_that_fails_is_served_as_the_reference(tmp_path: Path) -> None:
    def fails(_: Any) -> Any:
        raise SystemError("a device's own code")

    agreed = Agreement.of(dc.LinearSampler(dc.GaussianMixtures(1, box=(-4.0, 4.0)), epsilon=1.0))
    held: list[dict[str, Any]] = [{"p": fails}, {"records": [99.0]}, {"records": ["a"]}, {"counts": [1, 2]}]
    for place, given in enumerate(held):
        with serving(replies(agreed)) as server:
            receipt = device(server.address, tmp_path, ledger=tmp_path / f"{place}").send(**given)
            assert len(server.samples()) == 1
        assert -4.0 <= receipt.sample <= 4.0


# what was said elsewhere


def follower(first: Agreement, second: Agreement, rounds: tuple[int, ...] = (1,)) -> dict[str, Any]:
    rows = [
        {"agreement": first.id, "follows": None, "rounds": 1, "open": list(rounds), "purpose": ""},
        {"agreement": second.id, "follows": first.id, "rounds": 1, "open": list(rounds), "purpose": ""},
    ]
    return offering(first, agreement=second.id, agreements=rows)


@pytest.mark.parametrize("pin", [None, OTHER])
def test_no_collector_is_given_what_another_one_was_given(tmp_path: Path, pin: Agreement | None) -> None:
    """The second one says that its agreement follows the first one's. It got the first one's sample, under the first one's name."""
    texts = {each.id: each.text.encode() for each in (AGREED, OTHER)}

    def agreement(server: Server, line: Any) -> None:
        said(200, texts[server.asked[-1].path.partition("=")[2]])(server, line)

    with (
        serving(replies(AGREED)) as first,
        serving(replies(OTHER, collection=said(200, follower(AGREED, OTHER)), agreement=agreement)) as second,
    ):
        device(first.address, tmp_path).send(records=["red"])
        client = device(second.address, tmp_path, agreement=pin)
        client.send(records=["red"])
        (one,), (two,) = first.samples(), second.samples()
    assert two["agreement"] == OTHER.id
    assert one["client"] != two["client"]
    assert float(client.ledger.spent().basic) == 1.5  # a sample of its own, paid for


def test_one_agreement_at_two_addresses_is_two_questions(tmp_path: Path) -> None:
    with serving(replies(AGREED)) as first, serving(replies(AGREED)) as second:
        for server in (first, second, first, second):
            client = device(server.address, tmp_path)
            client.send(records=["red"])
        assert float(client.ledger.spent().basic) == 2.0
        names = [{each["client"] for each in server.samples()} for server in (first, second)]
        assert [len(found) for found in names] == [1, 1]
        assert names[0] != names[1]
        assert all(len({each["sample"] for each in server.samples()}) == 1 for server in (first, second))


def test_a_chain_that_is_told_anew_asks_nobody_twice(tmp_path: Path) -> None:
    """Spoken under B alone; then A is said to come before B, then after it, then B is said to be new."""
    with serving(replies(OTHER)) as server:
        first = device(server.address, tmp_path).send(records=["red"])
        for told in (follower(AGREED, OTHER), follower(OTHER, AGREED), offering(OTHER)):
            server.replies["/collection"] = [said(200, told)]
            assert device(server.address, tmp_path).send(records=["blue"]).sample == first.sample
        assert len({json.dumps(each) for each in server.samples()}) == 1
        assert float(Ledger(tmp_path / "ledger").spent().basic) == 0.5


def test_collections_that_are_made_up_cost_the_budget_and_no_more(tmp_path: Path) -> None:
    made = [
        Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=1.0), purpose=f"number {number}")
        for number in range(9)
    ]
    with serving(replies(made[0])) as server:
        for each in made:
            server.replies |= replies(each)
            with contextlib.suppress(BudgetError):
                device(server.address, tmp_path).send(records=["red"])
        names = [each["client"] for each in server.samples()]
        assert len(names) == len(set(names)) == 5


# one lock from the question to the charge


def test_two_runs_at_once_under_two_agreements_speak_once(tmp_path: Path) -> None:
    """Both look, find nothing and draw; then both want to charge."""
    texts = {each.id: each.text.encode() for each in (AGREED, OTHER)}

    def agreement(server: Server, line: Any) -> None:
        said(200, texts[server.asked[-1].path.partition("=")[2]])(server, line)

    both_have_drawn = threading.Barrier(2, timeout=60.0)
    drawn = DeviceData.prepare_draw

    with (
        serving(replies(AGREED, collection=said(200, follower(AGREED, OTHER)), agreement=agreement)) as server,
        pytest.MonkeyPatch.context() as patch,
    ):

        def slowly(self: Any, sampler: Any, agreed: Any) -> Any:
            found = drawn(self, sampler, agreed)
            both_have_drawn.wait()
            return found

        patch.setattr(DeviceData, "prepare_draw", slowly)
        clients = [device(server.address, tmp_path, agreement=pin) for pin in (AGREED, OTHER)]
        receipts: list[Receipt] = []
        threads = [
            threading.Thread(target=lambda one=one: receipts.append(one.send(records=["red"]))) for one in clients
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120.0)
        assert len({(each.agreement, each.sample) for each in receipts}) == 1
        assert len(Ledger(tmp_path / "ledger").entries()) == 1
        assert len({json.dumps(each) for each in server.samples()}) == 1


def test_a_collector_that_holds_its_answers_gets_one_sample(tmp_path: Path) -> None:
    with serving(replies(AGREED, samples=[hung_up, hung_up, said(200, COUNTED)])) as server:
        for _ in range(2):
            with pytest.raises(CollectorError, match=r"sending again with round=1 \(--round 1\) sends the same"):
                device(server.address, tmp_path).send(records=["red"])
        assert device(server.address, tmp_path).send(records=["blue"]).counted
        assert len({json.dumps(each) for each in server.samples()}) == 1


def test_the_advice_after_an_error_holds_for_a_collector_that_opens_another_round_each_time(tmp_path: Path) -> None:
    """Without the round eight tries were eight samples."""
    asked = Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=0.5), rounds=8)

    def opened(number: int) -> Any:
        row = {"agreement": asked.id, "follows": None, "rounds": 8, "open": [number], "purpose": ""}
        return said(200, offering(asked, agreements=[row], round=number))

    advised = None
    with serving(replies(asked, samples=said(500))) as server:
        for number in (3, 4, 2, 8):
            server.replies["/collection"] = [opened(number)]
            with pytest.raises(CollectorError, match="drawn and paid for") as refused:
                device(server.address, tmp_path, agreement=asked).send(records=["red"], round=advised)
            advised = int(str(refused.value).split("with round=")[1].split()[0])
        assert advised == 3
        assert len(server.samples()) == 4
        assert len({json.dumps(each) for each in server.samples()}) == 1
    assert len(Ledger(tmp_path / "ledger").entries()) == 1


# identity and ledger belong together


@pytest.mark.parametrize("how", ["deleted", "emptied", "new", "used"])
def test_a_ledger_that_is_lost_is_not_started_anew(tmp_path: Path, how: str) -> None:
    path = tmp_path / "ledger"
    with serving(replies(AGREED)) as server:
        device(server.address, tmp_path).send(records=["red"])
        if how == "emptied":
            path.write_bytes(b"")
        else:
            path.unlink()
        if how in ("new", "used"):
            elsewhere = Ledger.create(tmp_path / "elsewhere", Budget(epsilon=5.0))
            if how == "used":
                elsewhere.release(AGREED.sampler(), [1, 0, 0], agreement=AGREED)
            os.rename(elsewhere.path, path)
        why = "is empty, so it is damaged" if how == "emptied" else "this device has spent from"
        for _ in range(3):
            with pytest.raises(LedgerError, match=why) as refused:
                device(server.address, tmp_path)
            assert "Restore" in str(refused.value)
        if how in ("deleted", "emptied"):
            with pytest.raises(LedgerError, match="its identity"):
                Ledger.create(path, Budget(epsilon=1.0))
        assert len(server.samples()) == 1


def test_an_identity_that_is_lost_is_not_made_anew(tmp_path: Path) -> None:
    with serving(replies(AGREED)) as server:
        device(server.address, tmp_path).send(records=["red"])
        kept = (tmp_path / "ledger.identity").read_bytes()
        (tmp_path / "ledger.identity").unlink()
        with pytest.raises(LedgerError, match=r"identity .* is missing"):
            device(server.address, tmp_path)
        device(server.address, tmp_path, ledger=tmp_path / "another")
        os.rename(tmp_path / "another.identity", tmp_path / "ledger.identity")
        with pytest.raises(LedgerError, match="does not belong to ledger"):
            device(server.address, tmp_path)
        (tmp_path / "ledger.identity").write_bytes(kept)
        assert device(server.address, tmp_path).send(records=["blue"]).counted
        assert len({each["client"] for each in server.samples()}) == 1


def test_making_the_two_may_be_cut_short_anywhere(tmp_path: Path) -> None:
    """After the ledger, after the secret, after the note in the ledger: each time the next start goes on from there."""
    from discreet.client._client import read_or_create_identity

    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=1.0))
    path = tmp_path / "ledger.identity"
    secret = read_or_create_identity(path, ledger)
    os.rename(path, f"{path}.new")  # noted, but not named yet
    assert read_or_create_identity(path, ledger) == secret
    assert path.exists()
    assert not Path(f"{path}.new").exists()
    for left in (b"", b"discreet-secret-1 00", path.read_bytes()):  # a passing file that was not noted is of no use
        second = Ledger.create(tmp_path / f"second {len(left)}", Budget(epsilon=1.0))
        passing = Path(f"{second.path}.identity.new")
        passing.write_bytes(left)
        os.link(passing, tmp_path / f"a second name {len(left)}")  # as a kill may leave one
        assert len(read_or_create_identity(f"{second.path}.identity", second)) == 32
        assert Path(f"{second.path}.identity").stat().st_nlink == 1


def test_a_device_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """Ledgers of format 2 noted no identity: one that has not spoken yet is taken on with the identity beside it."""
    from discreet.ledger._book import Book
    from discreet.release._randomness import write_secret

    for name, entries in (("silent", []), ("spoken", [[AGREED.id, 1, 1.0, 0.5, 2, "2026-01-01T00:00:00+00:00"]])):
        book = Book(tmp_path / name, kind="discreet ledger 2")
        book.create({"epsilon": (5.0).hex(), "delta": (0.0).hex()})
        with book.using_write_transaction() as pen:
            for entry in entries:
                pen.add_line(entry)
        write_secret(tmp_path / f"{name}.identity")
        with serving(replies(AGREED)) as server:
            client = device(server.address, tmp_path, ledger=tmp_path / name, budget=None)
            assert client.send(records=["red"]).counted
            assert len(client.ledger.entries()) == len(entries) + 1


def test_an_identity_is_a_file_of_one_s_own(tmp_path: Path) -> None:
    path = tmp_path / "ledger.identity"
    with serving(replies(AGREED)) as server:
        device(server.address, tmp_path)
        os.link(path, tmp_path / "second name")
        with pytest.raises(dc.DiscreetError, match="hard link"):
            device(server.address, tmp_path)
        path.unlink()
        path.symlink_to(tmp_path / "second name")
        with pytest.raises(dc.DiscreetError, match="symbolic link"):
            device(server.address, tmp_path)
        path.unlink()
        os.rename(tmp_path / "second name", path)
        if os.geteuid() == 0:
            os.chown(path, 65534, -1)
            with pytest.raises(dc.DiscreetError, match="belongs to another user"):
                device(server.address, tmp_path)
            os.chown(path, 0, -1)
        device(server.address, tmp_path)


# who signs


def test_a_key_is_remembered_and_a_change_is_told_in_words(tmp_path: Path) -> None:
    with serving(replies(AGREED)) as server:
        server.replies["/collection"] = [said(200, signed(AGREED, [server.address]))]
        first = device(server.address, tmp_path).send(records=["red"])
        for told in (signed(AGREED, [server.address], SECOND_KEY), offering(AGREED)):
            server.replies["/collection"] = [said(200, told)]
            with pytest.raises(CollectorError, match=f"signed with key {KEY.public} before, and signs") as refused:
                device(server.address, tmp_path).send(records=["red"])
            assert "Ask its operator" in str(refused.value)
        assert len(server.samples()) == 1
        server.replies["/collection"] = [said(200, signed(AGREED, [server.address], SECOND_KEY))]
        meant = device(server.address, tmp_path, key=SECOND_KEY.public).send(records=["blue"])
        assert meant.sample == first.sample


def test_a_signature_of_another_address_vouches_for_nobody(tmp_path: Path) -> None:
    """Signatures are public: a second collector shows those of the first."""
    with serving(replies(AGREED)) as first, serving(replies(AGREED)) as second:
        told = said(200, signed(AGREED, [first.address]))
        first.replies["/collection"] = second.replies["/collection"] = [told]
        device(first.address, tmp_path).send(records=["red"])
        with pytest.raises(CollectorError, match="it offers another collector's agreement"):
            device(second.address, tmp_path).send(records=["red"])
        assert second.samples() == []


def test_an_agreement_that_is_kept_back_does_not_hide_that_its_sample_is_paid_for(tmp_path: Path) -> None:
    with serving(replies(AGREED, samples=[hung_up, said(200, COUNTED)])) as server:
        with pytest.raises(CollectorError, match="sending again with round=1"):
            device(server.address, tmp_path).send(records=["red"])
        agreement = server.replies["/agreement"]
        server.replies["/agreement"] = [said(404)]
        with pytest.raises(
            CollectorError, match=r"agreement answers 404.*sending again with round=1 .* spends nothing"
        ):
            device(server.address, tmp_path).send(records=["red"], round=1)
        server.replies["/agreement"] = agreement
        assert device(server.address, tmp_path).send(records=["red"], round=1).counted


def test_an_interruption_names_the_round_that_is_paid_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A collector that does not answer is interrupted by the device's owner, and has opened another round by the next call."""
    agreed = Agreement.of(dc.LinearSampler(dc.Simplex(COLOURS), epsilon=1.0), rounds=2)
    first, second = (
        said(200, offering(agreed, agreements=[{"agreement": agreed.id, "follows": None, "open": [number]}]))
        for number in (1, 2)
    )

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with serving(replies(agreed, collection=[first, second])) as server:
        with monkeypatch.context() as patch:
            patch.setattr(collector.Collector, "send_samples", interrupt)
            with pytest.raises(
                KeyboardInterrupt, match=r"send again with round=1; .* Another round costs epsilon again"
            ):
                device(server.address, tmp_path).send(records=["red"])
        client = device(server.address, tmp_path)
        assert client.send(records=["blue"], round=1).round == 1
        assert client.ledger.spent().basic == 1


def test_the_advice_after_a_move_says_what_another_address_costs(tmp_path: Path) -> None:
    """Unsigned at first, and then signed for other addresses alone: the sample of the advised address is another one, and paid for."""
    with serving(replies(AGREED)) as before, serving(replies(AGREED)) as now:
        device(before.address, tmp_path).send(records=["red"])
        before.replies["/collection"] = now.replies["/collection"] = [said(200, signed(AGREED, [now.address]))]
        with pytest.raises(
            CollectorError, match=r"use an address that it is signed for\. .* costs epsilon again, unless"
        ):
            device(before.address, tmp_path).send(records=["red"])
        device(now.address, tmp_path).send(records=["red"])
        assert Ledger(tmp_path / "ledger").spent().basic == 2


@pytest.mark.parametrize("visited", ["signed", "unsigned", "never"])
@pytest.mark.parametrize("earlier", [False, True])
def test_a_key_is_noted_for_no_address_of_another_collector(tmp_path: Path, visited: str, earlier: bool) -> None:
    """A collector signs for its own address and for another collector's, which must neither be locked out nor replaced.

    `earlier`: with a note for both addresses in the ledger, as earlier versions made it.
    """
    with serving(replies(AGREED)) as honest, serving(replies(OTHER)) as hostile:
        own = offering(AGREED) if visited == "unsigned" else signed(AGREED, [honest.address])
        honest.replies["/collection"] = [said(200, own)]
        if visited != "never":
            device(honest.address, tmp_path).send(records=["red"])
        claimed = sorted([hostile.address, honest.address])
        hostile.replies["/collection"] = [said(200, signed(OTHER, claimed, SECOND_KEY))]
        device(hostile.address, tmp_path).send(records=["red"])
        if earlier and visited == "signed":
            with Ledger(tmp_path / "ledger")._book.using_write_transaction() as pen:
                pen.add_line(["key", SECOND_KEY.public, claimed])
        if visited == "signed":
            honest.replies["/collection"] = [said(200, signed(AGREED, [honest.address], SECOND_KEY))]
            with pytest.raises(CollectorError, match=f"signed with key {KEY.public} before, and signs with key"):
                device(honest.address, tmp_path).send(records=["blue"])
        honest.replies["/collection"] = [said(200, own)]
        assert device(honest.address, tmp_path).send(records=["blue"]).round == 1
        assert len({json.dumps(each) for each in honest.samples()}) == 1
        assert len(Ledger(tmp_path / "ledger").entries()) == 2


def test_a_key_of_one_address_says_nothing_about_another(tmp_path: Path) -> None:
    """Where signing ends at an address that the device meets for the first time, it meets a collector of its own: another name and charge."""
    with serving(replies(AGREED)) as first, serving(replies(AGREED)) as second:
        first.replies["/collection"] = [said(200, signed(AGREED, [first.address, second.address]))]
        device(first.address, tmp_path).send(records=["red"])
        device(second.address, tmp_path).send(records=["red"])
        assert len({each["client"] for each in [*first.samples(), *second.samples()]}) == 2
        assert len(Ledger(tmp_path / "ledger").entries()) == 2
        second.replies["/collection"] = [said(200, signed(AGREED, [second.address]))]
        device(second.address, tmp_path).send(records=["red"])
        second.replies["/collection"] = [said(200, offering(AGREED))]
        with pytest.raises(CollectorError, match="signs nothing now"):
            device(second.address, tmp_path).send(records=["red"])


def test_a_note_of_an_earlier_version_holds_for_all_its_addresses_until_one_has_its_own() -> None:
    here, there = "https://a.example", "https://b.example"
    notes = [["key", KEY.public, [here, there]]]
    for address in (here, there):
        told = Destination(address, KEY.public, "0" * 64)
        assert told.check_key_and_make_key_note(notes) == ["key", KEY.public, [address]]
        with pytest.raises(CollectorError, match="signs nothing now"):
            Destination(address, None, "0" * 64).check_key_and_make_key_note(notes)
    accepted = Destination(here, None, "0" * 64, trusted=True).check_key_and_make_key_note(notes)
    assert accepted == ["key", None, [here]]
    assert Destination(here, None, "0" * 64).check_key_and_make_key_note([*notes, accepted]) is None


def test_what_the_owner_accepts_is_remembered_and_what_it_replaced_is_not(tmp_path: Path) -> None:
    with serving(replies(AGREED)) as server:

        def tell(key: CollectorKey | None) -> None:
            told = offering(AGREED) if key is None else signed(AGREED, [server.address], key)
            server.replies["/collection"] = [said(200, told)]

        tell(KEY)
        first = device(server.address, tmp_path).send(records=["red"])
        tell(SECOND_KEY)
        assert device(server.address, tmp_path, key=SECOND_KEY.public).send(records=["red"]).sample == first.sample
        assert device(server.address, tmp_path).send(records=["red"]).sample == first.sample
        tell(KEY)
        with pytest.raises(CollectorError, match="signed with key"):
            device(server.address, tmp_path).send(records=["red"])
        tell(None)
        with pytest.raises(CollectorError, match="signs nothing now"):
            device(server.address, tmp_path).send(records=["red"])
        assert device(server.address, tmp_path, key="none").send(records=["red"]).sample == first.sample
        assert device(server.address, tmp_path).send(records=["red"]).sample == first.sample
        assert len(Ledger(tmp_path / "ledger").entries()) == 1


@pytest.mark.parametrize("change", [{"signature": "0" * 128}, {"key": SECOND_KEY.public}, {"key": 7}, {"more": 1}])
def test_a_forged_signature_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with serving(replies(AGREED)) as server:
        told = signed(AGREED, [server.address])
        told["agreements"][0]["signed"] |= change
        server.replies["/collection"] = [said(200, told)]
        with pytest.raises(CollectorError, match="shows an invalid signature"):
            device(server.address, tmp_path).send(records=["red"])
        assert server.samples() == []


def test_a_collector_that_moves_is_known_by_its_key(tmp_path: Path) -> None:
    with serving(replies(AGREED)) as first, serving(replies(AGREED)) as second:
        told = said(200, signed(AGREED, [first.address, second.address]))
        first.replies["/collection"] = second.replies["/collection"] = [told]
        before = device(first.address, tmp_path).send(records=["red"])
        after = device(second.address, tmp_path).send(records=["blue"])
        assert before.sample == after.sample
        assert first.samples() == second.samples()
        assert len(Ledger(tmp_path / "ledger").entries()) == 1


@pytest.mark.parametrize("told", ["unsigned", "another key"])
def test_a_key_that_was_named_is_the_only_one(tmp_path: Path, told: str) -> None:
    with serving(replies(AGREED)) as server:
        if told == "another key":
            server.replies["/collection"] = [said(200, signed(AGREED, [server.address], SECOND_KEY))]
        with pytest.raises(CollectorError, match=f"is to sign with key {KEY.public}"):
            device(server.address, tmp_path, key=KEY.public).send(records=["red"])
        assert server.samples() == []
    with pytest.raises(dc.DiscreetError, match="64 hexadecimal digits"):
        device("http://localhost:1", tmp_path, key="a key")


def test_an_earlier_store_is_told_the_same_again(tmp_path: Path) -> None:
    """A collector that goes back to an earlier copy of its store has forgotten the sample, and the second agreement."""
    with serving(replies(AGREED)) as server:
        server.replies["/collection"] = [said(200, follower(AGREED, OTHER))]
        server.replies["/agreement"] = [said(200, OTHER.text.encode())]
        now = device(server.address, tmp_path, agreement=OTHER).send(records=["red"])
        server.replies |= replies(AGREED)
        with pytest.raises(CollectorError):
            device(server.address, tmp_path, agreement=OTHER).send(records=["red"])
        server.replies["/agreement"] = [said(200, OTHER.text.encode())]
        again = device(server.address, tmp_path).send(records=["blue"])
        assert (again.agreement, again.sample) == (now.agreement, now.sample)
        assert len(Ledger(tmp_path / "ledger").entries()) == 1


# the length of a request


@pytest.mark.parametrize(
    "family",
    [
        dc.Simplex(["no", "yes", "a much longer answer", 'a "quoted" one', "\u4e2d\u6587", "\U0001f600"]),
        dc.Simplex([1, 22, 333]),
        dc.Simplex(1000),
        dc.Simplex(dc.Interval(0.0, 1e-5, cells=7)),
    ],
)
def test_every_outcome_takes_the_same_bytes(family: Any) -> None:
    sampler = dc.OptimalSampler(family, epsilon=1.0)
    longest = client_module.longest_sample_length(sampler)
    bodies = [
        collector.sample_request_body(
            "a" * 64, 1, "b" * 64, client_module.sample_as_json_value(sampler.points(number)), longest
        )
        for number in range(family.size)
    ]
    assert len(set(map(len, bodies))) == 1
    assert [json.loads(body)["sample"] for body in bodies] == [
        client_module.sample_as_json_value(sampler.points(number)) for number in range(family.size)
    ]


# all of it at random


@pytest.mark.slow
def test_a_grammar_of_lies_finds_nothing() -> None:
    samples = sum(lies.run(seed)[1] for seed in range(12))
    assert samples > 20


def without_padding(patch: pytest.MonkeyPatch) -> str:
    patch.setattr(client_module, "longest_sample_length", lambda _: 0)
    return "requests tell two devices apart"


def refusing(patch: pytest.MonkeyPatch) -> str:
    def fit(self: Any, sampler: Any, agreed: Any) -> Any:
        law = sampler.family.law(records=self.records or ["nothing"])
        return DeviceDraw(lambda: int(sampler.release_number(law)))

    patch.setattr(DeviceData, "prepare_draw", fit)
    return "requests tell two devices apart"


def names_without_address(patch: pytest.MonkeyPatch) -> str:
    found = protocol.client_name_in_collection
    patch.setattr(protocol, "client_name_in_collection", lambda collection, secret, **_: found(collection, secret))
    return "one name with two collectors|two samples under one name"


def believing(patch: pytest.MonkeyPatch) -> str:
    patch.setattr(Destination, "is_same_collector_as", lambda self, before: before is not None)
    return "one name with two collectors"


def forgetful(patch: pytest.MonkeyPatch) -> str:
    patch.setattr(Destination, "is_answered_by_earlier_sample", lambda *_: False)
    return "two samples under one name|more was spent"


@pytest.mark.slow
@pytest.mark.parametrize("mistake", [without_padding, refusing, names_without_address, believing, forgetful])
def test_the_grammar_finds_devices_that_make_a_mistake(mistake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 150 seeds; those that have found a mistake before come first."""
    why = mistake(monkeypatch)
    with pytest.raises(AssertionError, match=why):
        collections.deque(map(lies.run, (1, 13, 80, *range(150))))
