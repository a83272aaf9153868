"""The verifier takes nothing on a certificate's word: whatever it accepts is true."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import pytest
from hypothesis import given, settings, strategies as st

import discreet as dc
from discreet import OptimalSampler, Simplex
from discreet.audit import certificate, certificate_of, verify
from discreet.release import TOTAL
from tests.soaking import examples

ABSENT = object()


def verified(path: Path) -> tuple[int, str]:
    """The script as somebody else would run it: alone, without this package or any other."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", verify.__file__, str(path)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


LINE = dc.Functional(
    [
        (0, Fraction(99, 100)),
        (Fraction(1, 5), Fraction(1, 2)),
        (Fraction(1, 2), Fraction(1, 5)),
        (Fraction(99, 100), 0),
        (1, 0),
    ]
)
NOTIONS = [dc.Approximate(1.0, delta=1e-3), dc.Approximate(0.1, delta=1e-9), dc.Gaussian(1.0), dc.Gaussian(0.05), LINE]


@pytest.mark.filterwarnings("ignore::discreet.LargeEpsilonWarning")
@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_other_promises_are_verified_and_larger_ones_are_not(notion: dc.privacy.Privacy, tmp_path: Path) -> None:
    for family in (Simplex(5), dc.Band([4, 3, 2, 1], lower=0.2, upper=2.0)):
        found = certificate(OptimalSampler(family, privacy=notion))
        assert found.holds
        assert found.privacy == notion
        record = verify.parse_certificate(found.to_json())
        assert verify.problems(record) == []
    path = tmp_path / "certificate.json"
    found.write(path)
    code, said = verified(path)
    assert (code, "LDP, and" in said) == (0, True)
    for forge in FORGERIES[record["privacy"]["kind"]]:
        forged = json.loads(found.to_json())
        forge(forged)
        assert verify.problems(forged), forged["privacy"]


AGREED = [
    dc.Agreement.of(
        OptimalSampler(Simplex(["tea", "coffee", "water"]), epsilon=0.5), rounds=3, purpose="a survey \u2615"
    ),
    dc.Agreement.of(dc.LinearSampler(dc.Band([3, 2, 1], lower=0.3, upper=1.7), epsilon=2.0)),
    dc.Agreement.of(OptimalSampler(Simplex(4), privacy=dc.Gaussian(0.7))),
    dc.Agreement.of(OptimalSampler(Simplex(4), privacy=LINE)),
    dc.Agreement.of(OptimalSampler(Simplex(5), epsilon=1.0), version=1),
    dc.Agreement.of(
        OptimalSampler(
            dc.LaplaceMixtures(1, radius=0.5, scale=1.0, box=(-2, 2)), epsilon=1.0, discretisation=dc.Cells(8)
        )
    ),
]


@pytest.mark.parametrize("agreement", AGREED, ids=lambda agreement: agreement.id[:8])
def test_a_certificate_names_the_agreement_it_is_for(agreement: dc.Agreement, tmp_path: Path) -> None:
    found = certificate(agreement.sampler(), agreement=agreement, most_inputs=8)
    path = tmp_path / "certificate.json"
    found.write(path)
    code, said = verified(path)
    assert (code, said.rstrip().endswith(f"under agreement {agreement.id}")) == (0, True), said
    assert verify.parse_certificate(found.to_json())["agreement"] == agreement.id
    for other in AGREED:
        if other is not agreement:
            with pytest.raises(dc.DiscreetError, match="belongs to agreement"):
                certificate(agreement.sampler(), agreement=other)


def test_an_agreement_that_a_certificate_is_not_for_is_found() -> None:
    agreement = AGREED[0]
    record = json.loads(certificate(agreement.sampler(), agreement=agreement).to_json())
    lied = {
        "bits": 61,
        "epsilon": 0.499,
        "family": {**agreement.document["family"], "size": 4},
        "privacy": {"kind": "gaussian", "nu": 0.1},
    }
    for name, value in lied.items():
        text = json.dumps({**agreement.document, name: value})
        forged = {**record, "agreement_text": text, "agreement": hashlib.sha256(text.encode()).hexdigest()}
        assert len(verify.problems(forged)) == 1, name
    other = AGREED[1]
    for forged in (
        {**record, "agreement": other.id},
        {**record, "agreement_text": other.canonical},
        {**record, "agreement_text": record["agreement_text"] + " "},
        {**record, "agreement": other.id, "agreement_text": other.canonical},
        {**record, "agreement": record["agreement"].upper()},
        {**record, "agreement": None},
        {name: value for name, value in record.items() if name != "agreement"},
        {name: value for name, value in record.items() if name != "agreement_text"},
    ):
        assert verify.problems(forged)


def test_certificates_without_an_agreement_are_what_they_were() -> None:
    """Their text has not changed, and they verify: files that were written before stay good."""
    found = certificate(OptimalSampler(Simplex(4), epsilon=0.5))
    record = verify.parse_certificate(found.to_json())
    assert record.keys() == verify.FIELDS | {"box"}
    assert verify.problems(record) == []


def test_an_agreement_says_what_is_claimed() -> None:
    with pytest.raises(dc.DiscreetError, match="leave out epsilon"):
        certificate(AGREED[0].sampler(), agreement=AGREED[0], epsilon=3.0)


FORGERIES: dict[str, list[Callable[[Any], Any]]] = {
    "approximate": [
        lambda r: r["privacy"].update(delta=r["privacy"]["delta"] * 0.999999),
        lambda r: r["privacy"].update(delta=0.0),
        lambda r: r["privacy"].update(kind="gaussian"),
        lambda r: r["privacy"].update(kind=["approximate"]),
        lambda r: r["corners"].reverse(),
        lambda r: r.pop("corners"),
        lambda r: r.pop("box"),
        lambda r: r["box"]["lower"].__setitem__(0, 1),
        lambda r: r.update(version=1),
    ],
    "gaussian": [
        lambda r: r["privacy"].update(nu=r["privacy"]["nu"] * 0.999999),
        lambda r: r.pop("place"),
        lambda r: r.update(place="-1/3"),
        lambda r: r.update(place=str(Fraction(r["place"]) + Fraction(1, 10**6))),
        lambda r: r.update(place="-1" + "0" * 900),
    ],
    "functional": [
        lambda r: r["privacy"]["points"].__setitem__(1, ["1/5", "3/5"]),
        lambda r: r["privacy"]["points"].__setitem__(1, ["1/5", "9/10"]),
        lambda r: r["privacy"]["points"].pop(),
        lambda r: r["privacy"]["points"].__setitem__(1, ["1/5", 0.5]),
        lambda r: r["privacy"].update(points=[["0", "1"], ["1", "0"]]),
    ],
}


def test_the_verifiers_normal_distribution_function() -> None:
    with mpmath.workdps(130):
        for x in (
            Fraction(0),
            Fraction(1, 3),
            Fraction(-5, 2),
            Fraction(8),
            Fraction(-12),
            Fraction(-29),
            Fraction(30),
        ):
            low, high = verify.normal_cdf_bounds(x)
            exact = mpmath.ncdf(mpmath.mpf(x.numerator) / x.denominator)
            assert mpmath.mpf(low.numerator) / low.denominator <= exact <= mpmath.mpf(high.numerator) / high.denominator
            assert high - low <= Fraction(3, 10**100)


@pytest.mark.slow
def test_the_script_runs_alone_and_finds_every_forgery(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    found = certificate(OptimalSampler(Simplex(4), epsilon=0.5))
    found.write(path)
    code, said = verified(path)
    assert (code, "0.5-LDP between any two inputs whatever" in said) == (0, True)
    table = certificate_of([[2, 3], [3, 2]], epsilon=0.5)
    table.write(path)
    code, said = verified(path)
    assert (code, "0.5-LDP between the 2 inputs listed, and no others" in said) == (0, True)
    found.write(path)
    forgeries: dict[str, Callable[[Any], Any]] = {
        "smaller epsilon": lambda r: r.update(epsilon=0.499999),
        "row": lambda r: r["weights"][0].__setitem__(0, r["weights"][0][0] + 1),
        "outside the box": lambda r: r["box"]["upper"].__setitem__(0, r["weights"][0][0] - 1),
        "ratio": lambda r: r["worst"].update(ratio="3/2"),
        "whole number": lambda r: r["weights"][0].__setitem__(1, 1.5),
        "the box allows": lambda r: r["box"]["upper"].__setitem__(1, TOTAL),
    }
    for name, forge in forgeries.items():
        record = json.loads(found.to_json())
        forge(record)
        path.write_text(json.dumps(record))
        code, said = verified(path)
        assert (code, "WRONG" in said) == (1, True), name
    for text in ("", "[]", "{}", '{"format": "discreet certificate", "version": 3}', "null"):
        path.write_text(text)
        code, said = verified(path)
        assert (code, f"not a certificate: {path}: " in said) == (2, True), text
    assert verified(tmp_path / "nowhere.json")[0] == 2


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.sampled_from([TOTAL, 10**4000, 0.5, 1.0, 1e308]) | st.text(max_size=3)
    | st.sampled_from(["1", "1/0", "3/2", "1e999999999", "-1", "\x1b[2K", "discreet certificate"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["lower", "upper", "ratio", "x"]), inner),
    max_leaves=6,
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in inside for place in [(*path, key), *places(part, (*path, key))]]


def truth_of(record: Any) -> None:
    """What an accepted certificate must say, found without the verifier."""
    rows = record["weights"]
    assert len(record["inputs"]) == len(set(record["inputs"])) == len(rows) >= 2
    assert {sum(row) for row in rows} == {record["total"]}
    worst = record["worst"]
    largest = max(Fraction(a[x], b[x]) for a in rows for b in rows for x in range(len(a)))
    first, second = (rows[worst[which]][worst["outcome"]] for which in ("first_input", "second_input"))
    assert Fraction(worst["ratio"]) == largest == Fraction(first, second)
    assert record["holds"] is True
    ratios = [largest]
    if "box" in record:
        lower, upper = record["box"]["lower"], record["box"]["upper"]
        assert all(low <= w <= high for row in rows for low, w, high in zip(lower, row, upper, strict=True))
        ratios += map(Fraction, upper, lower)
    with mpmath.workdps(80):
        for ratio in ratios:
            assert mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator) <= mpmath.mpf(record["epsilon"])
        low, high = (
            mpmath.mpf(Fraction(end).numerator) / Fraction(end).denominator for end in record["realised_epsilon"]
        )
        assert low <= mpmath.log(mpmath.mpf(largest.numerator) / largest.denominator) <= high


@pytest.mark.slow
@given(st.data(), st.booleans())
@settings(max_examples=examples(600), deadline=None)
def test_whatever_is_accepted_is_true(data: st.DataObject, boxed: bool) -> None:
    """One to three values replaced or left out, anywhere in the file."""
    sampler = OptimalSampler(Simplex(3), epsilon=0.5)
    found = certificate(sampler) if boxed else certificate_of([[3, 2, 2], [2, 3, 2]], epsilon=0.5)
    record = json.loads(found.to_json())
    for _ in range(data.draw(st.integers(1, 3))):
        *above, last = data.draw(st.sampled_from(places(record)))
        holder = record
        for key in above:
            holder = holder[key]
        wanted = data.draw(st.just(ABSENT) | TREES)
        if wanted is ABSENT and isinstance(holder, dict):
            del holder[last]
        elif wanted is not ABSENT:
            holder[last] = wanted
    try:
        accepted = not verify.problems(verify.parse_certificate(json.dumps(record)))
    except ValueError:
        accepted = False
    if accepted:
        truth_of(record)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"holds": true', '"holds": true, "box": null', "box"),
        ('"holds": true', '"holds": true, "holds": true', "given twice"),
        ('"holds": true', '"holds": false', "itself says"),
        ('"holds": true', '"holds": 1', "holds"),
        ('"holds": true', '"holds": true, "note": ""', "fields"),
        ('"inputs": ["input 0", "input 1"]', f'"inputs": {json.dumps([str(n) for n in range(1000)])}', "1000 inputs"),
        ('"inputs": ["input 0", "input 1"]', '"inputs": ["a", "a"]', "same name"),
        ('"epsilon": 0.5', '"epsilon": "0.5"', "epsilon"),
        ('"epsilon": 0.5', '"epsilon": NaN', "NaN"),
        ('"epsilon": 0.5', '"epsilon": Infinity', "Infinity"),
        ('"epsilon": 0.5', '"epsilon": 1e999', "epsilon"),
        ('"epsilon": 0.5', '"epsilon": -1', "epsilon"),
        ('"epsilon": 0.5', '"epsilon": true', "epsilon"),
        ('"total": 7', '"total": 7.0', "total"),
        ('"version": 1', '"version": true', "version"),
        ('"version": 1', '"version": 1.0', "version"),
        ('"ratio": "3/2"', '"ratio": "1e999999999"', "rational"),
        ('"ratio": "3/2"', '"ratio": "3/2\\u001b[2K"', "rational"),
        ('"outcome": 0', '"outcome": 2', "place"),
        ('"outcome": 0', '"outcome": -3', "outcome"),
        ('"first_input": 0', '"first_input": 1', "place"),
        ('"realised_epsilon": ["', '"realised_epsilon": ["1/2", "', "realised_epsilon"),
    ],
)
def test_a_forged_field_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, says: str
) -> None:
    honest = json.dumps(json.loads(certificate_of([[3, 2, 2], [2, 3, 2]], epsilon=0.5).to_json()))
    path = tmp_path / "certificate.json"
    path.write_text(honest)
    assert verify.main([str(path)]) == 0
    capsys.readouterr()
    assert old in honest
    path.write_text(honest.replace(old, new))
    assert verify.main([str(path)]) in (1, 2)
    said = capsys.readouterr()
    assert says in said.out + said.err
    assert all(character.isprintable() or character == "\n" for character in said.out + said.err)


def test_a_realised_epsilon_that_says_nothing_is_refused() -> None:
    record = json.loads(certificate_of([[3, 2, 2], [2, 3, 2]], epsilon=0.5).to_json())
    for bounds in (["0", "1/2"], ["0", "1/1000"], ["1/2", "1/2"]):
        record["realised_epsilon"] = bounds
        assert verify.problems(record) == ["the realised epsilon is not where it is said to be"]


def test_a_ratio_between_a_tenth_and_its_float_is_refused() -> None:
    """The float 0.1 is more than a tenth, and whoever reads 0.1 means a tenth: budgets are added up as they are written."""
    first, second = 1274175317715506082, 1152921504606846976
    ratio = Fraction(first, second)
    with mpmath.workdps(60):
        exact = mpmath.mpf(first) / second
        assert mpmath.exp(mpmath.mpf(1) / 10) < exact <= mpmath.exp(mpmath.mpf(0.1))
    found = certificate_of([[first, TOTAL - first], [second, TOTAL - second]], epsilon=0.1)
    assert found.ratio == ratio
    assert not found.holds
    record = json.loads(found.to_json()) | {"holds": True}
    assert verify.problems(record) == ["the ratio 1.10517091808 exceeds e^0.1 = 1.10517091808"]


def test_a_promise_about_a_total_of_zero_is_a_problem_and_no_error(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    certificate(OptimalSampler(Simplex(2), privacy=dc.Approximate(1.0, delta=1e-3))).write(path)
    record = verify.parse_certificate(path.read_text()) | {"total": 0}
    assert "the box holds no law of this total" in verify.problems(record)


def test_equal_weights_hold_at_every_epsilon() -> None:
    """A budget so small that 1 is the only ratio it allows, and that e^epsilon is 1 to every digit."""
    found = certificate_of([[1, 1], [1, 1]], epsilon=1e-300)
    assert found.holds
    assert verify.problems(verify.parse_certificate(found.to_json())) == []


@pytest.mark.parametrize(("size", "epsilon"), [(7, 2.0), (64, 0.5), (104, 1.0), (104, 4.0), (10**6, 1.0)])
def test_certificates_of_reports_are_verified_and_forged_ones_are_not(size: int, epsilon: float) -> None:
    sampler = dc.ReportSampler(dc.Simplex(size), epsilon=epsilon)
    found = certificate(sampler, agreement=dc.Agreement.of(sampler))
    record = verify.parse_certificate(found.to_json())
    assert verify.problems(record) == []
    other = dc.Agreement.of(dc.ReportSampler(dc.Simplex(size), epsilon=epsilon / 2))
    for forged in (
        {**record, "total": record["total"] + 1},
        {**record, "epsilon": epsilon / 2},
        {**record, "agreement": other.id},
        {**record, "agreement": other.id, "agreement_text": other.canonical},
        {**record, "weights": [[weight + 1 for weight in row] for row in record["weights"]]},
    ):
        assert verify.problems(forged)
