"""Mechanisms of one's own: exact for every law, described as released, and refused where they would be neither."""

import math
import pickle
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chisquare

import discreet as dc
from discreet import Band, DiscreetError, LinearSampler, OptimalSampler, OwnSampler, Simplex
from discreet.audit import certificate
from discreet.errors import OutsideBoxWarning
from discreet.mechanisms import Mechanism, MollifierSampler
from discreet.privacy import Pure, largest_ratio_for_epsilon
from discreet.release import TOTAL
from tests.soaking import examples
from tests.strategies import laws

Floats = NDArray[np.float64]
P = np.array([0.4, 0.3, 0.2, 0.1])
TRUST = pytest.mark.filterwarnings("ignore::discreet.errors.OutsideBoxWarning")


class RevealOrObscure(OwnSampler):
    """Reveal a raw draw with probability gamma, else obscure it by a uniform outcome."""

    name = "reveal-or-obscure"
    linear = True

    def law(self, p: Floats) -> ArrayLike:
        growth, k = math.exp(self.epsilon), len(p)
        gamma = (growth - 1) / (growth - 1 + k)
        return gamma * p + (1 - gamma) / k


class Tempered(OwnSampler):
    """The exponential mechanism with the score p_x, of range 1: q proportional to exp(epsilon p_x/2)."""

    name = "tempered"

    def __init__(self, family: Any, *, epsilon: Any = None, privacy: Any = None, sharpness: float = 1.0) -> None:
        self.sharpness = sharpness
        super().__init__(family, epsilon=epsilon, privacy=privacy)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"sharpness": self.sharpness}

    def law(self, p: Floats) -> ArrayLike:
        score = np.exp(self.sharpness * self.epsilon * p / 2)
        return np.asarray(score / score.sum())

    @property
    def floor(self) -> ArrayLike:
        """An outcome of score 0 beside one of score 1: the sum of exp(eps p/2) over p is convex, so largest at a point mass."""
        k, growth = self.family.size, math.exp(self.sharpness * self.epsilon / 2)
        return np.full(k, 1.0 / (growth + k - 1))


def test_output_overridden_beside_weights_is_refused() -> None:
    """The output said .325, and 20,000 releases gave .367."""
    with pytest.raises(
        DiscreetError, match="Mine overrides output, and would describe one mechanism and release another"
    ):

        class Mine(OptimalSampler[Any]):  # type: ignore[misc]
            name = "mine"

            def output(self, p: Any) -> Any:
                return 0.5 * np.asarray(p) + 0.5 / np.shape(p)[-1]


@pytest.mark.parametrize("name", sorted(dc.Sampler._SEALED - {"can_draw_in_constant_time"}))
@pytest.mark.parametrize("base", [dc.Sampler, OptimalSampler, LinearSampler, MollifierSampler, OwnSampler])
def test_nothing_on_which_a_release_rests_is_overridden(base: type[Any], name: str) -> None:
    with pytest.raises(DiscreetError, match=f"overrides {name}"):
        type("Mine", (base,), {"name": "mine", name: lambda self, *_: None})
    mixin = type("Mixin", (), {name: lambda self, *_: None})
    with pytest.raises(DiscreetError, match=f"overrides {name}"):
        type("Mine", (mixin, base), {"name": "mine"})


@pytest.mark.parametrize("name", ["constants", "reference", "mixing", "with_samples", "bounds", "matrix"])
def test_what_follows_from_a_floor_is_not_overridden(name: str) -> None:
    with pytest.raises(DiscreetError, match=f"overrides {name}"):
        type("Mine", (OwnSampler,), {"name": "mine", name: None})


@pytest.mark.parametrize("name", ["output", "release", "box", "lattice", "weights", "_draw_atom_numbers"])
def test_nothing_on_which_a_release_rests_is_set(name: str) -> None:
    for sampler in (OptimalSampler(Simplex(4), epsilon=1.0), RevealOrObscure(Simplex(4), epsilon=1.0)):
        with pytest.raises(DiscreetError, match=rf"\.{name} cannot be set"):
            setattr(sampler, name, None)


@pytest.mark.parametrize("name", ["optimal", "reports", "", 3])
def test_names_of_ours_are_taken(name: Any) -> None:
    with pytest.raises(DiscreetError, match="is not a name for a mechanism of your own"):
        type("Mine", (OwnSampler,), {"name": name})
    with pytest.raises(DiscreetError, match="name = "):
        OwnSampler.of(Simplex(2), np.full((2, 2), 0.5), epsilon=1.0, name=name)


def test_reveal_or_obscure_is_the_linear_mechanism() -> None:
    ours, theirs = RevealOrObscure(Simplex(4), epsilon=1.0), LinearSampler(Simplex(4), epsilon=1.0)
    assert np.abs(ours.output(P) - theirs.output(P)).max() < 1e-15
    assert np.abs(ours.weights(P) - theirs.weights(P)).max() < 2**12  # of 2^62: the roundings of two formulas
    for name in ("kl", "tv", "hellinger"):
        assert float(ours.risk(name)) == pytest.approx(float(theirs.risk(name)), rel=1e-12)
        assert ours.risk(name).attained


SAMPLERS: list[Callable[[], OwnSampler]] = [
    lambda: RevealOrObscure(Simplex(4), epsilon=1.0),
    lambda: Tempered(Simplex(4), epsilon=1.0),
    lambda: OwnSampler.of(Simplex(4), [[0.4, 0.2, 0.2, 0.2]] * 2 + [[0.2, 0.2, 0.4, 0.2]] * 2, epsilon=1.0),
    lambda: OwnSampler.of(Simplex(4), lambda p: 0.3 * p + 0.175, floor=0.175, epsilon=1.2),
    lambda: OwnSampler.of(
        Simplex(4), lambda p: 0.1 * p + 0.225, floor=0.225, ceiling=0.325, privacy=dc.Approximate(0.3, delta=0.04)
    ),
]


@pytest.mark.parametrize("make", SAMPLERS)
def test_an_own_mechanism_is_a_sampler(make: Callable[[], OwnSampler]) -> None:
    sampler = make()
    many = np.tile(P, (2, 3, 1))
    assert isinstance(sampler, Mechanism)
    assert sampler.output(many).shape == sampler.weights(many).shape == (2, 3, 4)
    assert sampler.release(many).shape == (2, 3)
    assert sampler.release(np.empty((0, 4))).shape == (0,)
    assert isinstance(sampler.release(P), int)
    assert np.array_equal(sampler.output(P), sampler.weights(P) / TOTAL)
    assert certificate(sampler).holds
    assert 0 <= sampler.release_reference_number() < 4
    assert sampler == sampler
    assert hash(sampler) == hash(sampler)
    with pytest.raises(DiscreetError, match="constant_time is not for a mechanism of your own"):
        sampler.release(P, constant_time=True)
    with pytest.raises(DiscreetError, match="p sums to"):
        sampler.release([1.0, 1.0, 0.0, 0.0])
    drawn = np.bincount(sampler.release(np.tile(P, (4_000, 1))), minlength=4)
    assert chisquare(drawn, sampler.output(P) * 4_000, sum_check=False).pvalue > 1e-6


def test_parameters_travel_with_another_budget_and_several_samples() -> None:
    sampler = Tempered(Simplex(4), epsilon=1.0, sharpness=0.5)
    assert sampler.with_privacy(dc.Pure(0.2)) == Tempered(Simplex(4), epsilon=0.2, sharpness=0.5)
    assert sampler != Tempered(Simplex(4), epsilon=1.0)
    assert repr(sampler) == "Tempered(Simplex(4), epsilon=1, sharpness=0.5)"
    assert np.asarray(sampler.release(P, size=3)).shape == (3,)
    assert pickle.loads(pickle.dumps(sampler)) == sampler
    with pytest.raises(DiscreetError, match="is for one budget; subclass OwnSampler"):
        OwnSampler.of(Simplex(2), np.full((2, 2), 0.5), epsilon=1.0).release([0.5, 0.5], size=2)


def test_labels_and_dicts() -> None:
    colours = RevealOrObscure(Simplex(["red", "green", "blue"]), epsilon=30.0)
    assert colours.release({"green": 1.0}) == "green"


WRONG: dict[str, Callable[[Floats], Any]] = {
    "nan": lambda p: np.where(p == p.max(), math.nan, p),
    "infinite": lambda p: np.where(p == p.max(), math.inf, p),
    "negative": lambda p: p - (p == p.max()) + np.roll(p == p.max(), 1),
    "not summing to one": lambda p: 7 * p,
    "nothing": lambda p: None,
    "text": lambda p: "abc",
    "shape": lambda p: p[:2],
    "two rows": lambda p: np.stack([p, p]),
    "ragged": lambda p: [[1.0], [2.0, 3.0], 4.0, 5.0],
    "complex": lambda p: p * (1 + 1j),
    "raw": lambda p: p,
    "raises by value": lambda p: 1 / 0 if p[0] > 0.5 else 0.2 * p + 0.2,
    "exits": lambda p: (_ for _ in ()).throw(SystemExit(3)),
    "zero": lambda p: np.zeros_like(p),
    "huge": lambda p: p * 1e308 * 10,
    "denormal": lambda p: np.where(p > 0.5, 1.0, 5e-324),
    "writes": lambda p: p.__setitem__(slice(None), 0.25) or p,
    "masked": lambda p: np.ma.array(p, mask=p > 0.5),
    "object": lambda p: np.array([object()] * 4),
}


class Wrong(OwnSampler):
    """Right for the public clients that are tried, and wrong in one of many ways ever after."""

    name = "wrong"
    checked_clients = 8

    def __init__(self, family: Any, *, epsilon: float, way: str) -> None:
        self.calls, self.way = 0, way
        super().__init__(family, epsilon=epsilon)
        self.calls = 1

    def law(self, p: Floats) -> Any:
        return WRONG[self.way](p) if self.calls else 0.2 * p + 0.2

    @property
    def floor(self) -> ArrayLike:
        return np.full(self.family.size, 0.2)


@TRUST
@pytest.mark.parametrize("way", WRONG)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_a_wrong_law_costs_utility_and_never_privacy(way: str) -> None:
    """In rationals: any two rows that can be drawn with, of any clients, differ by a factor of at most e^epsilon."""
    sampler = Wrong(Simplex(4), epsilon=0.8, way=way)
    clients = np.vstack([np.eye(4), P, P[::-1], np.full(4, 0.25)])
    rows = [[int(w) for w in row] for row in sampler.weights(clients)]
    bound = largest_ratio_for_epsilon(0.8)
    assert all(sum(row) == 2**62 and min(row) > 0 for row in rows)
    assert all(Fraction(a, b) <= bound for one in rows for two in rows for a, b in zip(one, two, strict=True))
    assert sampler.release(clients).shape == (7,)  # no client is told apart by an error
    assert sampler.release_number(clients[0]) in range(4)


@pytest.mark.parametrize(
    ("way", "said"), [("raises by value", "ZeroDivisionError"), ("raw", "leaves its box for 2 of 2")]
)
def test_a_wrong_law_is_warned_of(way: str, said: str) -> None:
    sampler = Wrong(Simplex(4), epsilon=0.8, way=way)
    with pytest.warns(OutsideBoxWarning, match=said):
        sampler.release(np.eye(4)[:2])


def test_a_law_outside_the_box_is_projected() -> None:
    sampler = Wrong(Simplex(4), epsilon=0.8, way="raw")
    with pytest.warns(OutsideBoxWarning):
        assert sampler.output(P) == pytest.approx(sampler.box.project(P), abs=1e-15)


class Forgetful(OwnSampler):
    """Another answer at every call."""

    name = "forgetful"

    def __init__(self, family: Any, *, epsilon: float) -> None:
        self.chance = np.random.default_rng(1)
        super().__init__(family, epsilon=epsilon)

    def law(self, p: Floats) -> ArrayLike:
        k = len(p)
        return 0.5 / k + 0.5 * self.chance.dirichlet(np.ones(k)) if self.chance.random() < 0.5 else np.full(k, 1 / k)

    @property
    def floor(self) -> ArrayLike:
        return np.full(self.family.size, 0.5 / self.family.size)


@TRUST
def test_a_law_is_asked_once_for_each_release_and_drawn_from_as_checked() -> None:
    asked: list[Floats] = []

    def law(p: Floats) -> Floats:
        asked.append(p)
        return np.array([0.9, 0.1]) if len(asked) % 2 else np.array([0.1, 0.9])

    with pytest.raises(DiscreetError, match="law of a public client"):
        OwnSampler.of(Simplex(2), law, floor=0.3, epsilon=1.0)
    sampler = OwnSampler.of(Simplex(2), law, floor=0.1, epsilon=3.0)
    asked.clear()
    sampler.release(np.full((10, 2), 0.5))
    assert len(asked) == 10
    forgetful = Forgetful(Simplex(3), epsilon=2.0)
    rows = [forgetful.weights(p) for p in np.eye(3) for _ in range(50)]
    bound = largest_ratio_for_epsilon(2.0)
    assert all(Fraction(int(a), int(b)) <= bound for one in rows for two in rows for a, b in zip(one, two, strict=True))


def test_a_law_changes_neither_the_client_nor_what_was_read_of_it() -> None:
    kept: list[Floats] = []

    def law(p: Floats) -> Floats:
        for before in kept:
            before[:] = 0.0  # the arrays that earlier calls returned
        p[:] = 0.5
        kept.append(np.array([0.5, 0.5]))
        return kept[-1]

    sampler = OwnSampler.of(Simplex(2), law, floor=0.4, epsilon=1.0)
    clients = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert sampler.output(clients).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert clients.tolist() == [[1.0, 0.0], [0.0, 1.0]]


@TRUST
@given(data=st.data(), k=st.integers(2, 6), epsilon=st.floats(0.01, 20.0))
@settings(max_examples=examples(60), deadline=None)
def test_every_row_lies_in_one_lattice_of_ratio_e_to_epsilon(data: st.DataObject, k: int, epsilon: float) -> None:
    """Any law at all, over any floor: the integers stay between L and U, and U <= e^epsilon L."""
    spread = np.array(data.draw(st.lists(st.floats(1e-6, 1.0), min_size=k, max_size=k)))
    least, most = math.exp(-epsilon), 1.0
    floor = spread / spread.sum() * data.draw(st.floats(least + 0.001 * (most - least), most - 0.001 * (most - least)))
    answers = st.one_of(laws(k), st.lists(st.floats(), min_size=k, max_size=k), st.none())
    first = True

    def law(p: Floats) -> Any:
        return floor / floor.sum() if first else data.draw(answers)

    sampler = OwnSampler.of(Simplex(k), law, floor=floor, epsilon=epsilon)
    first = False
    lattice = sampler.lattice
    assert lattice.largest_ratio <= largest_ratio_for_epsilon(epsilon)
    for row in sampler.weights(np.stack([data.draw(laws(k)) for _ in range(3)])):
        assert sum(map(int, row)) == 2**62
        assert (row >= lattice.lower).all()
        assert (row <= lattice.upper).all()


class Late(OwnSampler):
    """Its parameter is set too late."""

    name = "late"

    def __init__(self, family: Any, *, epsilon: float) -> None:
        super().__init__(family, epsilon=epsilon)
        self.kept = 0.3

    def law(self, p: Floats) -> ArrayLike:
        return self.kept * p + (1 - self.kept) / len(p)

    @property
    def floor(self) -> ArrayLike:
        return np.full(2, (1 - self.kept) / 2)


class Bent(OwnSampler):
    """Not linear, whatever it says."""

    name = "bent"
    linear = True

    def law(self, p: Floats) -> ArrayLike:
        return np.asarray(0.3 * p**2 / (p**2).sum() + 0.7 / len(p))


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: OwnSampler.of(Simplex(2), lambda p: p, epsilon=1.0), "floor is not given"),
    (
        lambda: OwnSampler.of(Simplex(2), lambda p: p, floor=0.3, epsilon=1.0),
        "gives outcome . the probability 1, which is not",
    ),
    (lambda: OwnSampler.of(Simplex(2), lambda p: 1 / 0, floor=0.3, epsilon=1.0), "it raised ZeroDivisionError"),
    (lambda: OwnSampler.of(Simplex(2), lambda p: p[:1], floor=0.3, epsilon=1.0), r"it has the shape \(1,\)"),
    (lambda: OwnSampler.of(Simplex(2), lambda p: 2 * p, floor=0.3, epsilon=1.0), "it is no distribution"),
    (lambda: OwnSampler.of(Simplex(2), lambda p: p, floor=0.6, epsilon=1.0), "floor that sums to 1.2"),
    (lambda: OwnSampler.of(Simplex(2), lambda p: p, floor=0.01, epsilon=1.0), "ceiling that sums to 0.054"),
    (lambda: OwnSampler.of(Simplex(2), lambda p: p, floor=[0.5, 0.0], epsilon=1.0), r"floor\[1\] = 0"),
    (lambda: OwnSampler.of(Simplex(2), lambda p: p, floor=[0.5, math.nan], epsilon=1.0), r"floor\[1\] = nan is NaN"),
    (lambda: OwnSampler.of(Simplex(2), lambda p: p, floor=[0.5], epsilon=1.0), "floor has shape"),
    (lambda: OwnSampler.of(Simplex(2), lambda p: p, floor=0.4, ceiling=0.3, epsilon=1.0), "is below floor"),
    (lambda: OwnSampler.of(Simplex(2), lambda p: p, floor=0.4, privacy=dc.Gaussian(1.0)), "state the ceiling too"),
    (
        lambda: OwnSampler.of(Simplex(2), [[0.9, 0.1], [0.1, 0.9]], epsilon=1.0),
        "a ratio of 9, more than e.1; its epsilon is 2.19722",
    ),
    (lambda: OwnSampler.of(Simplex(2), [[0.5, 0.5]], epsilon=1.0), "law has shape"),
    (lambda: OwnSampler.of(Simplex(3), [[0.5, 0.5], [0.5, 0.5]], epsilon=1.0), "it raised DiscreetError"),
    (lambda: OwnSampler.of(Simplex(2), [[0.6, 0.6], [0.5, 0.5]], epsilon=1.0), "it is no distribution"),
    (lambda: OwnSampler.of(Simplex(2), [[1.0, 0.0], [0.5, 0.5]], epsilon=1.0), r"floor\[1\] = 0"),
    (
        lambda: OwnSampler.of(
            Simplex(2), lambda p: 0.1 * p + 0.45, floor=0.3, ceiling=0.7, privacy=dc.Approximate(0.1, delta=1e-6)
        ),
        r"\(0.1, 1e-06\)-LDP",
    ),
    (lambda: Late(Simplex(2), epsilon=1.0), r"no attribute 'kept'.*; set parameters of your own before super"),
    (lambda: Bent(Simplex(3), epsilon=1.0), "says linear = True, and its law is not linear in p"),
    (
        lambda: OwnSampler.of(Simplex(2), lambda p: p[:, 0], floor=0.3, epsilon=1.0),
        "IndexError: .*takes the 2 probabilities of one",
    ),
    (lambda: Wrong(Simplex(4), epsilon=0.8, way="raw").with_privacy(dc.Pure(0.5)), "cannot be made for another budget"),
    (lambda: RevealOrObscure(dc.GaussianMixtures(1), epsilon=1.0), "is continuous"),  # type: ignore[arg-type]
    (lambda: RevealOrObscure(3, epsilon=1.0), "family = 3"),  # type: ignore[arg-type]
    (lambda: RevealOrObscure(Simplex(3)), "epsilon"),
    (lambda: RevealOrObscure(Simplex(3), epsilon=math.nan), "epsilon = nan"),
]


@pytest.mark.parametrize(("make", "said"), REFUSED)
def test_what_cannot_be_exact_is_refused_before_any_client_is_seen(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(DiscreetError, match=said):
        make()


def test_a_floor_is_read_once() -> None:
    """A floor that moves gives the lattice that was checked, and no other."""
    reads: list[int] = []

    class Moving(OwnSampler):
        name = "moving"

        def law(self, p: Floats) -> ArrayLike:
            return 0.2 * p + 0.4

        @property
        def floor(self) -> ArrayLike:
            reads.append(1)
            return np.full(2, 0.4 / len(reads))

    sampler = Moving(Simplex(2), epsilon=1.0)
    before = sampler.weights([1.0, 0.0])
    assert reads == [1]
    assert np.array_equal(sampler.weights([1.0, 0.0]), before)
    assert reads == [1]


def test_bands_are_tried_at_their_extreme_members() -> None:
    """On a band a law may stay above a floor that point masses would fall below."""
    band = Band([1, 1], lower=0.5, upper=1.5)
    sampler = OwnSampler.of(band, lambda p: p, floor=0.25, epsilon=1.2)
    assert sampler.output([0.75, 0.25]).tolist() == [0.75, 0.25]
    with pytest.raises(DiscreetError, match="public client"):
        OwnSampler.of(band, lambda p: p, floor=0.3, epsilon=1.2)


def test_the_worst_case_is_an_upper_bound() -> None:
    sampler = Tempered(Simplex(4), epsilon=2.0)
    rng = np.random.default_rng(0)
    clients = np.vstack([np.eye(4), rng.dirichlet(np.full(4, 0.3), size=500)])
    for name in ("kl", "tv", "hellinger", "chi2"):
        risk = sampler.risk(name)
        assert not risk.attained
        assert not risk.tight
        assert float(np.max(dc.divergence(name)(clients, sampler.output(clients)))) <= float(risk)


def test_no_warning_where_nothing_is_wrong() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", OutsideBoxWarning)
        for make in SAMPLERS:
            make().release(np.random.default_rng(3).dirichlet(np.ones(4), size=50))


def test_whether_a_sample_comes_does_not_depend_on_data() -> None:
    """Not where warnings are errors, nor where the law changes how numpy takes errors."""

    def law(p: Floats) -> ArrayLike:
        np.seterr(all="raise")
        return [1.0 - 1e-320, 1e-320, 0.0, 0.0] if 0.9 < p.max() < 0.99 else [0.25] * 4

    before = np.geterr()
    try:
        sampler = OwnSampler.of(Simplex(4), law, floor=np.full(4, 0.15), epsilon=1.0)
        with pytest.warns(OutsideBoxWarning, match="leaves its box for 1 of 1"):
            sampler.release([0.97, 0.01, 0.01, 0.01])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for p in ([0.97, 0.01, 0.01, 0.01], [0.25] * 4):
                assert 0 <= sampler.release(p) < 4
    finally:
        np.seterr(**before)


def test_a_linear_law_has_the_same_integers_in_every_batch() -> None:
    """A product of matrices may add up in another order than that of one row."""
    sampler = RevealOrObscure(Simplex(50), epsilon=1.0)
    clients = np.random.default_rng(3).dirichlet(np.ones(50), size=40)
    assert np.array_equal(sampler.weights(clients), [sampler.weights(p) for p in clients])


def test_the_reference_is_not_written_to() -> None:
    sampler = RevealOrObscure(Simplex(4), epsilon=1.0)
    for numbers in (sampler.reference, sampler.reference_weights):
        with pytest.raises(ValueError, match="read-only"):
            numbers[0] = 0


def test_seals_are_not_opened_by_a_subclass() -> None:
    def law(self: Any, p: Any) -> Any:
        return np.full(3, 1 / 3)

    stated = {"law": law, "floor": property(lambda self: np.full(3, 0.3))}
    opened: list[dict[str, Any]] = [
        {"_SEALED": frozenset({"_draw_atom_numbers"}), "_draw_atom_numbers": lambda *_: 0},
        {"_SEALED": frozenset()},
        {"_privacy": None},
        {"_carrier": 3},
    ]
    for more in opened:
        with pytest.raises(DiscreetError, match=r"_SEALED|overrides"):
            type("Opened", (dc.OwnSampler,), {**stated, **more})
    sampler = type("Kept", (dc.OwnSampler,), stated)(dc.Simplex(3), epsilon=5.0)
    for name, value in (("_privacy", Pure(0.5)), ("_family", dc.Simplex(3)), ("output", None)):
        with pytest.raises(DiscreetError, match="cannot be set"):
            setattr(sampler, name, value)
    assert sampler.epsilon == 5.0


def test_an_empty_name_is_said_to_be_empty() -> None:
    with pytest.raises(dc.DiscreetError, match="name = '' is empty; pass a name for legends and tables"):
        dc.OwnSampler.of(dc.Simplex(2), [[0.6, 0.4], [0.4, 0.6]], epsilon=1.0, name="")
