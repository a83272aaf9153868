"""What every store does, whatever its engine: the same tests for each, most of them against a plain model of what is kept."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet import DiscreetError
from discreet.agreement import Agreement
from discreet.collect import open_store
from discreet.collect._counting import Arrival, Verdict, text_digest
from discreet.collect._store import Store

DAY = "2026-07-01"


def agreed(outcomes: Any, *, epsilon: float = 1.0, rounds: int = 1, purpose: str = "") -> Agreement:
    """An agreement on so many outcomes, or on those labels."""
    return Agreement.of(dc.LinearSampler(dc.Simplex(outcomes), epsilon=epsilon), rounds=rounds, purpose=purpose)


def arrival(client: Any, outcome: int = 0, key: Any = "first") -> Arrival:
    """A sample of a client, under a key of its own unless told otherwise."""
    return Arrival(text_digest("client", str(client)), text_digest("key", str(client), str(key)), outcome)


@dataclass
class Model:
    """What a store should hold."""

    collections: dict[str, str] = field(default_factory=dict)
    spoken: dict[tuple[str, int, bytes], bytes] = field(default_factory=dict)
    counted: Counter[tuple[str, int, int]] = field(default_factory=Counter)
    arrived: Counter[tuple[str, int, str]] = field(default_factory=Counter)

    def add(self, agreement: Agreement, follows: str | None) -> None:
        self.collections[agreement.id] = agreement.id if follows is None else self.collections[follows]

    def count(self, agreement: str, round: int, arrivals: list[Arrival], day: str) -> list[Verdict]:
        verdicts = []
        for one in arrivals:
            who = (self.collections[agreement], round, one.client)
            if who in self.spoken:
                verdicts.append(Verdict.AGAIN if self.spoken[who] == one.key else Verdict.SPOKEN)
                continue
            verdicts.append(Verdict.COUNTED)
            self.spoken[who] = one.key
            self.counted[agreement, round, one.outcome] += 1
            self.arrived[agreement, round, day] += 1
        return verdicts

    def check(self, store: Store, agreements: list[Agreement]) -> None:
        assert {kept.agreement.id: kept.collection for kept in store.agreements()} == self.collections
        for agreement in agreements:
            for number in range(1, agreement.rounds + 1):
                expected = [self.counted[agreement.id, number, outcome] for outcome in range(agreement.domain.size)]
                assert store.outcome_counts(agreement.id, number).tolist() == expected
                days = sorted((key[2], n) for key, n in self.arrived.items() if key[:2] == (agreement.id, number))
                assert store.sample_counts_by_day(agreement.id, number) == days


class Behaviour:
    """A class of tests has these where it says what an empty store is called, by a fixture `where`."""

    @pytest.fixture
    def store(self, where: str) -> Any:
        opened = open_store(where)
        yield opened
        opened.close()

    def test_a_closed_collection_counts_nothing_more_and_acknowledges_what_it_counted(self, store: Store) -> None:
        first, second, other = agreed(3), agreed(3, epsilon=0.5), agreed(4)
        for each, follows in ((first, None), (second, first.id), (other, None)):
            store.add(each, follows=follows)
        assert store.count_arrivals(first.id, 1, [arrival("ann", 0), arrival("bob", 2)], DAY) == [Verdict.COUNTED] * 2
        assert {each.closed for each in store.agreements()} == {None}
        assert store.close_collection(second.id, "2026-07-02") == "2026-07-02"
        assert store.close_collection(first.id, "2026-07-09") == "2026-07-02"  # for good, and once
        sent = [arrival("ann", 1), arrival("cid", 1), arrival("bob", 2, "second"), arrival("cid", 1), arrival("bob", 2)]
        found = [Verdict.AGAIN, Verdict.CLOSED, Verdict.SPOKEN, Verdict.CLOSED, Verdict.AGAIN]
        assert store.count_arrivals(first.id, 1, sent, DAY) == found
        assert store.count_arrivals(second.id, 1, [arrival("dan")], DAY) == [Verdict.CLOSED]
        # another collection goes on
        assert store.count_arrivals(other.id, 1, [arrival("cid", 3)], DAY) == [Verdict.COUNTED]
        assert store.outcome_counts(first.id, 1).tolist() == [1, 0, 1]
        assert store.outcome_counts(second.id, 1).sum() == 0
        assert store.sample_counts_by_day(first.id, 1) == [(DAY, 2)]
        assert [each.closed for each in store.agreements()] == ["2026-07-02", "2026-07-02", None]
        with pytest.raises(DiscreetError, match="not in the store"):
            store.close_collection("0" * 64, DAY)

    def test_nothing_is_counted_once_a_collection_is_closed_whoever_counts_meanwhile(
        self, store: Store, where: str
    ) -> None:
        """Threads count while another closes: the counts that are read right after closing stay."""
        first = agreed(3)
        store.add(first)
        stop = threading.Event()
        counted: list[Verdict] = []

        def count(thread: int) -> None:
            own = open_store(where)
            number = 0
            while not stop.is_set():
                counted.extend(own.count_arrivals(first.id, 1, [arrival(f"{thread} {number}", number % 3)], DAY))
                number += 1
            own.close()

        threads = [threading.Thread(target=count, args=(each,)) for each in range(2)]
        for each in threads:
            each.start()
        while len(counted) < 10:
            stop.wait(0.01)
        store.close_collection(first.id, DAY)
        then = store.outcome_counts(first.id, 1).tolist()
        while Verdict.CLOSED not in counted:
            stop.wait(0.01)
        stop.set()
        for each in threads:
            each.join()
        assert store.outcome_counts(first.id, 1).tolist() == then
        assert counted.count(Verdict.COUNTED) == sum(then)

    def test_how_few_samples_are_hidden_is_kept_for_every_collection(self, store: Store) -> None:
        for each in (agreed(3), agreed(4)):
            store.add(each)
        assert [each.least for each in store.agreements()] == [0, 0]
        store.close_collection(agreed(3).id, DAY)
        for least in (50, 7):
            store.hide_estimates_below(least)
            assert [(each.least, each.closed) for each in store.agreements()] == [(least, DAY), (least, None)]
        bad: list[Any] = [-1, 1.5, True, 10**16]
        for wrong in bad:
            with pytest.raises(DiscreetError, match="least"):
                store.hide_estimates_below(wrong)

    def test_a_collection_that_begins_later_is_hidden_as_the_store_says(self, store: Store) -> None:
        first, follower, later = agreed(3), agreed(4), agreed(5)
        store.add(first)
        store.hide_estimates_below(50)
        store.set_estimate_visibility("after")
        store.close_collection(first.id, DAY)
        store.add(follower, follows=first.id)
        store.add(later)
        kept = store.agreements()
        assert [(each.least, each.shown) for each in kept] == [(50, "after")] * 3
        assert [each.closed for each in kept] == [DAY, DAY, None]
        assert kept[0].ticket == kept[1].ticket != kept[2].ticket
        assert kept[2].ticket

    def test_estimates_are_shown_as_chosen_under_one_ticket_for_each_collection(self, store: Store) -> None:
        first, second = agreed(3), agreed(4)
        store.add(first)
        store.add(second)
        assert {(each.shown, each.ticket) for each in store.agreements()} == {("always", "")}
        store.hide_estimates_below(5)
        tickets = []
        for shown in ("after", "never", "after"):
            store.set_estimate_visibility(shown)
            kept = store.agreements()
            assert [(each.shown, each.least, each.closed) for each in kept] == [(shown, 5, None)] * 2
            tickets.append([each.ticket for each in kept])
        assert tickets[0] == tickets[1] == tickets[2]  # who has one keeps it
        assert len({*tickets[0]}) == 2
        with pytest.raises(DiscreetError, match="shown = 'sometimes'"):
            store.set_estimate_visibility("sometimes")

    def test_questions_stay_once_somebody_has_answered(self, store: Store) -> None:
        first, second = agreed(3), agreed(4)
        store.add(first)
        store.add(second)
        for words in ("{}", '{"title":"é蓝🦊"}'):
            store.save_questions(first.id, words)
            assert [each.questions for each in store.agreements()] == [words, None]
        store.count_arrivals(first.id, 1, [arrival("ann", 0)], DAY)
        store.save_questions(first.id, words)
        with pytest.raises(DiscreetError, match="people who read other words"):
            store.save_questions(first.id, "{}")
        store.save_questions(second.id, "{}")  # another collection, which nobody has answered
        assert [each.questions for each in store.agreements()] == [words, "{}"]
        with pytest.raises(DiscreetError, match="not in the store"):
            store.save_questions("0" * 64, "{}")

    def test_each_client_is_counted_once_and_a_key_that_comes_again_is_told_so(self, store: Store) -> None:
        first = agreed(3)
        store.add(first)
        both = [arrival("ann", 0), arrival("bob", 2)]
        assert store.count_arrivals(first.id, 1, both, DAY) == [Verdict.COUNTED, Verdict.COUNTED]
        assert store.count_arrivals(first.id, 1, both, "2026-07-02") == [Verdict.AGAIN, Verdict.AGAIN]
        assert store.count_arrivals(first.id, 1, [arrival("ann", 1, key="second")], DAY) == [Verdict.SPOKEN]
        assert store.outcome_counts(first.id, 1).tolist() == [1, 0, 1]
        assert store.outcome_counts(first.id, 1).dtype == np.int64
        assert store.sample_counts_by_day(first.id, 1) == [(DAY, 2)]
        assert store.count_arrivals(first.id, 1, [], DAY) == []

    def test_within_one_batch_the_first_of_a_client_counts(self, store: Store) -> None:
        first = agreed(3)
        store.add(first)
        batch = [arrival("ann", 0), arrival("ann", 0), arrival("ann", 1, key="second"), arrival("bob", 1)]
        expected = [Verdict.COUNTED, Verdict.AGAIN, Verdict.SPOKEN, Verdict.COUNTED]
        assert store.count_arrivals(first.id, 1, batch, DAY) == expected
        assert store.outcome_counts(first.id, 1).tolist() == [1, 1, 0]

    def test_a_client_speaks_once_in_a_collection_under_whichever_agreement_of_it(self, store: Store) -> None:
        first, second, third, apart = agreed(2), agreed(2, epsilon=0.5), agreed(4, epsilon=0.25), agreed(2, epsilon=2.0)
        store.add(first)
        store.add(second, follows=first.id)
        store.add(third, follows=second.id)
        store.add(apart)
        assert [(kept.agreement.id, kept.collection, kept.follows) for kept in store.agreements()] == [
            (first.id, first.id, None),
            (second.id, first.id, first.id),
            (third.id, first.id, second.id),
            (apart.id, apart.id, None),
        ]
        assert store.count_arrivals(first.id, 1, [arrival("ann")], DAY) == [Verdict.COUNTED]
        for following in (second, third):
            assert store.count_arrivals(following.id, 1, [arrival("ann", 1, key="second")], DAY) == [Verdict.SPOKEN]
            assert not store.outcome_counts(following.id, 1).any()
        assert store.count_arrivals(apart.id, 1, [arrival("ann", 1, key="second")], DAY) == [Verdict.COUNTED]

    def test_rounds_are_counted_apart(self, store: Store) -> None:
        first = agreed(2, rounds=3)
        store.add(first)
        for number in (1, 2, 3):
            assert store.count_arrivals(first.id, number, [arrival("ann", 1)], DAY) == [Verdict.COUNTED]
            assert store.count_arrivals(first.id, number, [arrival("ann", 1)], DAY) == [Verdict.AGAIN]
            assert store.outcome_counts(first.id, number).tolist() == [0, 1]

    def test_an_agreement_is_kept_whole_and_never_changed(self, store: Store, where: str) -> None:
        labelled = agreed(["rot", "grün", "null\u2028"], purpose="Farben")
        cells = Agreement.of(dc.OptimalSampler(dc.Simplex(dc.Interval(0.0, 1.0, cells=7)), epsilon=1.0))
        line = Agreement.of(dc.OptimalSampler(dc.GaussianMixtures(1, radius=1.0, scale=1.0, box=(-3, 3)), epsilon=1.0))
        for agreement in (labelled, cells, line):
            store.add(agreement)
            store.add(agreement)
        again = open_store(where, create=False)
        assert [kept.agreement.text for kept in again.agreements()] == [labelled.text, cells.text, line.text]
        again.close()
        assert len(store.outcome_counts(line.id, 1)) > 100
        for one, follows in ((labelled, cells.id), (cells, "0" * 64)):
            with pytest.raises(DiscreetError, match="follows none, not"):
                store.add(one, follows=follows)
        with pytest.raises(DiscreetError, match="is not in the store; collect under it first"):
            store.add(agreed(9), follows="0" * 64)
        assert len(store.agreements()) == 3

    def test_weights_too_many_to_list_are_kept_too(self, store: Store) -> None:
        weights = 1.0 + np.arange(70_000) / 70_000
        many = Agreement.of(dc.OptimalSampler(dc.Band(weights, lower=0.0, upper=3.0, any_client=True), epsilon=1.0))
        store.add(many)
        (kept,) = store.agreements()
        assert kept.agreement.id == many.id
        assert kept.agreement.sampler().family.weights.tolist() == many.sampler().family.weights.tolist()
        store.count_arrivals(many.id, 1, [arrival("ann", 69_999)], DAY)
        assert store.outcome_counts(many.id, 1).nonzero()[0].tolist() == [69_999]

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (lambda one: (one.id, 1, [arrival("ann", 3)]), "outcome = 3 is not one of the 3 agreed on"),
            (lambda one: (one.id, 1, [arrival("ann", -1)]), "outcome = -1"),
            (lambda one: (one.id, 0, [arrival("ann")]), "round = 0 is less than 1"),
            (lambda one: (one.id, 2, [arrival("ann")]), "round is more than 1"),
            (lambda one: ("0" * 64, 1, [arrival("ann")]), "is not in the store"),
            (lambda one: (one.id, 1, [Arrival(b"ann", b"key", 0)]), "digests of 16 bytes"),
        ],
    )
    def test_what_was_not_agreed_on_changes_nothing(
        self, store: Store, change: Callable[[Agreement], Any], says: str
    ) -> None:
        first = agreed(3)
        store.add(first)
        agreement, number, arrivals = change(first)
        with pytest.raises(DiscreetError, match=says):
            store.count_arrivals(agreement, number, [arrival("bob"), *arrivals], DAY)
        assert not store.outcome_counts(first.id, 1).any()
        assert store.sample_counts_by_day(first.id, 1) == []
        assert store.count_arrivals(first.id, 1, [arrival("bob")], DAY) == [Verdict.COUNTED]

    def test_unknown_agreements_have_no_counts(self, store: Store) -> None:
        for ask in (store.outcome_counts, store.sample_counts_by_day):
            with pytest.raises(DiscreetError, match="is not in the store"):
                ask("0" * 64, 1)

    @pytest.mark.parametrize("seed", range(5))
    def test_random_scripts_go_as_in_a_plain_model(self, where: str, seed: int) -> None:
        chosen, model = random.Random(seed), Model()
        pool = [agreed(5, epsilon=0.1 * number, rounds=chosen.randint(1, 3)) for number in range(1, 6)]
        stores = [open_store(where) for _ in range(2)]
        known: list[Agreement] = []
        for _ in range(60):
            store = chosen.choice(stores)
            if not known or (len(known) < len(pool) and chosen.random() < 0.2):
                follows = chosen.choice([None, *(one.id for one in known)])
                store.add(pool[len(known)], follows=follows)
                model.add(pool[len(known)], follows)
                known.append(pool[len(known)])
            under = chosen.choice(known)
            number, day = chosen.randint(1, under.rounds), f"2026-07-{chosen.randint(1, 4):02}"
            batch = [
                arrival(chosen.randint(1, 40), chosen.randrange(5), key=chosen.choice(("first", "first", "second")))
                for _ in range(chosen.randint(0, 12))
            ]
            assert store.count_arrivals(under.id, number, batch, day) == model.count(under.id, number, batch, day)
        for store in stores:
            model.check(store, known)
            store.close()

    def test_threads_count_each_client_once(self, store: Store) -> None:
        """Every thread sends all clients in an order of its own: over all of them each is counted once."""
        first, second = agreed(7), agreed(7, epsilon=0.5)
        store.add(first)
        store.add(second, follows=first.id)
        clients = 300
        counted = self._in_threads(
            store,
            lambda number: [
                (chosen := (first, second)[number % 2], arrival(client, client % 7, key=chosen.id))
                for client in range(clients)
            ],
        )
        assert counted == clients
        totals = store.outcome_counts(first.id, 1) + store.outcome_counts(second.id, 1)
        assert totals.tolist() == np.bincount(np.arange(clients) % 7, minlength=7).tolist()

    @staticmethod
    def _in_threads(store: Store, sent: Callable[[int], list[tuple[Agreement, Arrival]]]) -> int:
        counted, failures = [0] * 4, list[BaseException]()

        def send(number: int) -> None:
            chosen = random.Random(number)
            rows = sent(number)
            chosen.shuffle(rows)
            try:
                while rows:
                    size = chosen.randint(1, 20)
                    batch, rows = rows[:size], rows[size:]
                    verdicts = store.count_arrivals(batch[0][0].id, 1, [one for _, one in batch], DAY)
                    counted[number] += verdicts.count(Verdict.COUNTED)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        return sum(counted)
