"""Verify a certificate of `discreet`: python verify.py CERTIFICATE. Standard library only; independent of the mechanism.

A certificate is untrusted data: it has exactly the fields below, each of its type and once, and everything that can be computed is
recomputed. Checked, in whole numbers:

* there is one name for each row of weights, all names differ, and every row sums to the stated total;
* the stated worst ratio is the largest W_i(x)/W_j(x), at the stated place, and its logarithm lies in the stated interval;
* it is at most e^epsilon (bounded from below with 50 digits, for epsilon as it is written and as a float), and the certificate itself
  states that the claim holds;
* if there is a box, all weights lie in it, and its own ratio is at most e^epsilon too;
* if another promise is stated beside epsilon, every two distributions in the box keep it. With s = sum of the lower bounds / total and r
  the largest ratio of the box, let l = min(1 - s, r s - 1)/(r - 1) and u = r l. For every z >= 1 the largest sum (W - z W')_+ over two
  distributions in the box is at most (u - z l) total (a set A has at most mass u of one where it has at least l of the other, or is worse),
  as of the pair (u, l, rest), (l, u, rest) on three points. Its trade-off function is a broken line with the corners (l, 1 - u) and (1 - u,
  l), so a convex trade-off function f is kept, at every z at once, if f(l) <= 1 - u and f(1 - u) <= l: for (epsilon, delta) that is u -
  e^epsilon l <= delta; for Gaussian nu it is Phi(x) <= l and u <= Phi(x + nu) for some x, which is stated; for a broken line it is read off
  the line;
* if an agreement is named, its id is the SHA-256 of its text, which is there too, and the claim is the promise of that text: the same
  epsilon, the same other promise or none, weights of as many bits, on as many outcomes.

That proves epsilon-LDP between the listed inputs. With a box it proves that and the other promise between all inputs whose weights lie in
it. No file can prove that a mechanism draws with these weights and keeps to that box.
Exit status 0: the claim holds. 1: it does not, or the certificate contradicts itself. 2: not a certificate.
"""

import decimal
import hashlib
import itertools
import json
import math
import re
import sys
from fractions import Fraction
from typing import Any

__all__ = ["main", "problems"]

FIELDS = {
    "format", "version", "mechanism", "epsilon", "inputs", "total", "weights", "worst", "realised_epsilon", "holds"
}  # fmt: skip
AGREED = {"agreement", "agreement_text"}  # both or neither: older certificates have neither
WORST = {"outcome", "first_input", "second_input", "ratio"}
NOTIONS = {"approximate": {"kind", "epsilon", "delta"}, "gaussian": {"kind", "nu"}, "functional": {"kind", "points"}}
RATIONAL = re.compile("[0-9]{1,1000}(/[1-9][0-9]{0,999})?")
ID = re.compile("[0-9a-f]{64}")
PI = "3.141592653589793238462643383279502884197169399375105820974944592307816406286208998628034825342117067982148086513282306647093844609550"
CONTEXT = decimal.Context(prec=50, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
FINER = decimal.Context(prec=90, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def stated_number(number: float) -> decimal.Decimal:
    """The smaller of a number as it is written and the float that its digits stand for: 0.1 is a tenth, which no float is."""
    return min(decimal.Decimal(number), decimal.Decimal(repr(number)))


def largest_ratio_for_epsilon(epsilon: float) -> Fraction:
    """A rational certainly at most e^epsilon, and at least 1."""
    with decimal.localcontext(CONTEXT):
        return max(Fraction(1), Fraction(stated_number(min(epsilon, 700.0)).exp().next_minus()))


def log_bounds(ratio: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals certainly at most and at least log(ratio), for a ratio of at least 1."""
    with decimal.localcontext(FINER):
        quotient = decimal.Decimal(ratio.numerator) / decimal.Decimal(ratio.denominator)
        low = max(quotient.next_minus(), decimal.Decimal(1)).ln()
        return Fraction(low.next_minus() if low else low), Fraction(quotient.next_plus().ln().next_plus())


def json_object_refusing_repeated_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without repeated fields: readers would differ on which one counts."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field is given twice")
    return fields


def refuse_json_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def parse_certificate(text: str) -> dict[str, Any]:
    """The certificate in a text; a ValueError if it is none."""
    record: dict[str, Any] = json.loads(
        text, object_pairs_hook=json_object_refusing_repeated_fields, parse_constant=refuse_json_constant
    )
    raise_unless(isinstance(record, dict) and record.get("format") == "discreet certificate", "unknown format")
    raise_unless(is_whole_number(record.get("version")) and record["version"] in (1, 2), "unknown version")
    return record


def refuse_malformed_certificate(record: dict[str, Any]) -> None:
    """Every field is there, of its type, and fits the others; a ValueError says which does not."""
    raise_unless(type(record) is dict and is_whole_number(record.get("version")), "it is not an object with a version")
    agreement_fields = AGREED & record.keys()
    raise_unless(
        agreement_fields in (set(), AGREED), "an agreement is named by its id and its text, and one of them is missing"
    )
    fields = record.keys() - agreement_fields
    if record["version"] == 2:
        needed_fields = FIELDS | {"box", "privacy", "corners"}
        raise_unless(needed_fields <= fields <= needed_fields | {"place"}, "its fields are not those of a certificate")
        refuse_malformed_promise(record)
    else:
        raise_unless(FIELDS <= fields <= FIELDS | {"box"}, "its fields are not those of a certificate")
    if agreement_fields:
        raise_unless(type(record["agreement"]) is str, "the id of the agreement is not 64 hexadecimal digits")
        raise_unless(bool(ID.fullmatch(record["agreement"])), "the id of the agreement is not 64 hexadecimal digits")
        raise_unless(type(record["agreement_text"]) is str, "the text of the agreement is not a text")
    epsilon = record["epsilon"]
    raise_unless(type(epsilon) in (int, float) and 0 < epsilon < math.inf, "epsilon is not a positive number")
    raise_unless(type(record["mechanism"]) is str, "mechanism is not a text")
    raise_unless(type(record["holds"]) is bool, "holds is neither true nor false")
    rows, names = record["weights"], record["inputs"]
    raise_unless(
        is_list(rows) and len(rows) >= 2 and all(is_list(row) for row in rows), "weights are not two rows or more"
    )
    raise_unless(bool(rows[0]) and len({len(row) for row in rows}) == 1, "rows of weights are not equally long")
    raise_unless(
        all(is_whole_number(w) and w >= 1 for row in rows for w in row), "a weight is not a positive whole number"
    )
    raise_unless(is_whole_number(record["total"]), "the total is not a whole number")
    raise_unless(is_list(names) and all(type(name) is str and name for name in names), "inputs is not a list of names")
    raise_unless(len(names) == len(rows), f"{len(names)} inputs are named for {len(rows)} rows of weights")
    raise_unless(len(set(names)) == len(names), "two inputs have the same name")
    worst, bounds = record["worst"], record["realised_epsilon"]
    raise_unless(
        isinstance(worst, dict) and worst.keys() == WORST, "worst does not name an outcome, two inputs and a ratio"
    )
    for key, size in (("outcome", len(rows[0])), ("first_input", len(rows)), ("second_input", len(rows))):
        raise_unless(is_whole_number(worst[key]) and 0 <= worst[key] < size, f"worst.{key} is not one of {size}")
    raise_unless(is_list(bounds) and len(bounds) == 2, "realised_epsilon is not two numbers")
    for rational in (worst["ratio"], *bounds):
        raise_unless(
            type(rational) is str and RATIONAL.fullmatch(rational) is not None, "a ratio or bound is not a rational"
        )
    if "box" in record:
        box = record["box"]
        raise_unless(
            isinstance(box, dict) and box.keys() == {"lower", "upper"}, "the box is not a lower and an upper bound"
        )
        for side in box.values():
            raise_unless(is_list(side) and len(side) == len(rows[0]), "the box does not have a bound for each outcome")
            raise_unless(
                all(is_whole_number(x) and x >= 1 for x in side), "the box is not one of positive whole numbers"
            )


def refuse_malformed_promise(record: dict[str, Any]) -> None:
    """Check that the promise beside epsilon is one of three kinds, with numbers in their ranges."""
    promise, corners = record["privacy"], record["corners"]
    raise_unless(isinstance(promise, dict) and type(promise.get("kind")) is str, "the promise is of no known kind")
    raise_unless(promise["kind"] in NOTIONS, "the promise is of no known kind")
    raise_unless(promise.keys() == NOTIONS[promise["kind"]], "the promise does not have the fields of its kind")
    for name, most in (("epsilon", math.inf), ("delta", 1.0), ("nu", math.inf)):
        if name in promise:
            number = promise[name]
            raise_unless(type(number) in (int, float) and 0 < number < most, f"the promise's {name} is out of range")
    raise_unless(is_list(corners) and len(corners) == 2, "the corners are not two rationals")
    raise_unless(all(is_rational_text(corner) for corner in corners), "the corners are not two rationals")
    raise_unless("place" not in record or is_rational_text(record["place"], signed=True), "the place is not a rational")
    if "points" in promise:
        points = promise["points"]
        raise_unless(is_list(points) and 2 <= len(points) <= 10**5, "the broken line has no points")
        pairs = all(
            is_list(pair) and len(pair) == 2 and all(is_rational_text(entry) for entry in pair) for pair in points
        )
        raise_unless(pairs, "a point of the broken line is not a pair of rationals")


def is_rational_text(value: object, *, signed: bool = False) -> bool:
    if type(value) is not str:
        return False
    return RATIONAL.fullmatch(value.removeprefix("-") if signed else value) is not None


def normal_cdf_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals certainly at most and at least Phi(x), for |x| <= 30: the integral of the density's series, term by term.

    Phi(x) = 1/2 + density(x) (x + x^3/3 + x^5/15 + ...) for x >= 0; with 120 digits all roundings together are below 10^-100.
    """
    if x < 0:
        low, high = normal_cdf_bounds(-x)
        return 1 - high, 1 - low
    if x > 30:
        return normal_cdf_bounds(Fraction(30))[0], Fraction(1)
    with decimal.localcontext(decimal.Context(prec=120, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)):
        value = decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator)
        term = total = value
        odd = 3
        while term > decimal.Decimal("1e-110") or odd < 4 * value * value:
            term = term * value * value / odd
            total, odd = total + term, odd + 2
        density = (-value * value / 2).exp() / (2 * decimal.Decimal(PI)).sqrt()
        area = Fraction(total * density)
    return Fraction(1, 2) + area - Fraction(1, 10**100), Fraction(1, 2) + area + Fraction(1, 10**100)


def broken_line_value(points: list[tuple[Fraction, Fraction]], x: Fraction) -> Fraction:
    """The value at x in [0, 1] of the broken line through points."""
    for (left, high), (right, low) in itertools.pairwise(points):
        if x <= right:
            return high + (low - high) * (x - left) / (right - left)
    return points[-1][1]


def is_tradeoff_function(points: list[tuple[Fraction, Fraction]]) -> bool:
    """Whether the broken line goes from x = 0 to 1, falls, is convex, and lies between 0 and 1 - x."""
    sides = list(itertools.pairwise(points))
    if points[0][0] != 0 or points[-1][0] != 1 or any(left[0] >= right[0] for left, right in sides):
        return False
    slopes = [(right[1] - left[1]) / (right[0] - left[0]) for left, right in sides]
    return slopes == sorted(slopes) and slopes[-1] <= 0 and all(0 <= y <= 1 - x for x, y in points)


def box_keeps_promise(record: dict[str, Any], lower: Fraction, upper: Fraction) -> bool:
    """Whether a trade-off function lies below the corners, so that the promise holds for any two distributions in the box."""
    promise = record["privacy"]
    if promise["kind"] == "approximate":
        return upper - largest_ratio_for_epsilon(promise["epsilon"]) * lower <= Fraction(
            stated_number(promise["delta"])
        )
    if promise["kind"] == "gaussian":
        if lower == upper:
            return True
        point = Fraction(record["place"]) if "place" in record else None
        if point is None or abs(point) > 1000:
            return False
        return (
            normal_cdf_bounds(point)[1] <= lower
            and upper <= normal_cdf_bounds(point + Fraction(stated_number(promise["nu"])))[0]
        )
    points = [(Fraction(x), Fraction(y)) for x, y in promise["points"]]
    if not is_tradeoff_function(points):
        return False
    return broken_line_value(points, lower) <= 1 - upper and broken_line_value(points, 1 - upper) <= lower


def promise_text(promise: dict[str, Any]) -> str:
    """A promise in words."""
    if promise["kind"] == "approximate":
        return f"({promise['epsilon']!r}, {promise['delta']!r})-LDP"
    return (
        f"{promise['nu']!r}-Gaussian LDP"
        if promise["kind"] == "gaussian"
        else f"f-LDP ({len(promise['points'])} points)"
    )


def raise_unless(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def is_whole_number(value: object) -> bool:
    return type(value) is int  # neither True nor 1.0


def is_list(value: object) -> bool:
    return type(value) is list


def problems(record: dict[str, Any]) -> list[str]:
    """Everything that is wrong with a certificate.

    Args:
        record: what the certificate's file holds, read as JSON.

    Returns:
        A sentence for each problem; an empty list for a certificate that holds.
    """
    try:
        refuse_malformed_certificate(record)
    except ValueError as error:
        return [str(error)]
    rows, worst, bound, faults = record["weights"], record["worst"], largest_ratio_for_epsilon(record["epsilon"]), []
    if any(sum(row) != record["total"] for row in rows):
        faults.append("a row does not sum to the total")
    largest = max(Fraction(max(column), min(column)) for column in zip(*rows, strict=True))
    if Fraction(worst["ratio"]) != largest:
        faults.append(f"the largest ratio is {ratio_text(largest)}, not the one stated")
    first, second = (rows[worst[key]][worst["outcome"]] for key in ("first_input", "second_input"))
    if Fraction(first, second) != largest:
        faults.append("the largest ratio is not at the place stated")
    low, high = map(Fraction, record["realised_epsilon"])
    least, most = log_bounds(largest)
    if not (low <= least and most <= high and high - low < Fraction(1, 10**40)):
        faults.append("the realised epsilon is not where it is said to be")
    if largest > bound:
        faults.append(f"the ratio {ratio_text(largest)} exceeds e^{record['epsilon']!r} = {ratio_text(bound)}")
    if not record["holds"]:
        faults.append("the certificate itself says that the claim does not hold")
    if "box" in record:
        lower, upper = record["box"]["lower"], record["box"]["upper"]
        if any(not low <= w <= high for row in rows for low, w, high in zip(lower, row, upper, strict=True)):
            faults.append("a weight lies outside the box")
        if max(Fraction(high, low) for low, high in zip(lower, upper, strict=True)) > bound:
            faults.append(f"the box allows a ratio above e^{record['epsilon']!r}")
    if "privacy" in record:
        faults += promise_problems(record)
    if "agreement" in record:
        faults += differences_from_agreement(record)
    return faults


def differences_from_agreement(record: dict[str, Any]) -> list[str]:
    """All differences between the certificate and the agreement that it names."""
    text = record["agreement_text"].encode("utf-8", "surrogatepass")
    if hashlib.sha256(text).hexdigest() != record["agreement"]:
        return ["the id of the agreement is not that of its text"]
    try:
        terms: Any = json.loads(
            record["agreement_text"],
            object_pairs_hook=json_object_refusing_repeated_fields,
            parse_constant=refuse_json_constant,
        )
    except (ValueError, RecursionError):
        terms = None
    if not (isinstance(terms, dict) and isinstance(terms.get("family"), dict)):
        return ["the text of the agreement is not that of one"]
    bits: Any = terms.get("bits")
    size: Any = terms["family"].get("size")
    differences = []
    if record["epsilon"] != terms.get("epsilon"):
        differences.append("epsilon is not the one agreed on")
    if terms.get("privacy") != record.get("privacy"):
        differences.append("the promise beside epsilon is not the one agreed on")
    # then outcomes are classes of blocks, and totals multiples of 2^bits
    reports = terms.get("mechanism") in ("reports", "survey")
    if not is_whole_number(bits) or not 0 < bits < 10**4 or not total_fits_agreed_bits(record["total"], bits, reports):
        differences.append("the total is not of as many bits as agreed on")
    if reports:
        if terms.get("mechanism") == "reports" and len(record["weights"][0]) > 4:
            differences.append("the classes of blocks are more than two outcomes make")
    elif size is not None and (
        not is_whole_number(size) or not weight_count_fits_outcomes(len(record["weights"][0]), size, terms.get("joint"))
    ):
        differences.append("the outcomes are not as many as agreed on")
    return differences


def total_fits_agreed_bits(total: int, bits: int, reports: bool) -> bool:
    """Whether weights are in units of 2^-bits; those of reports in units that divide it."""
    return total > 0 and total % (1 << bits) == 0 if reports else total == 1 << bits


def weight_count_fits_outcomes(weights: int, size: int, joint: Any) -> bool:
    """Whether there are as many weights as outcomes; for J samples drawn together, as multisets of J of them, C(size + J - 1, J)."""
    if joint is None:
        return weights == size
    samples: Any = joint.get("samples") if isinstance(joint, dict) else None
    if not is_whole_number(samples) or size < 1 or samples < 1:
        return False
    multisets = 1
    for index in range(1, samples + 1):
        multisets = multisets * (size - 1 + index) // index
        if multisets > weights or size == 1:  # they only grow, or stay at 1
            break
    return multisets == weights


def promise_problems(record: dict[str, Any]) -> list[str]:
    """The error in the promise beside epsilon."""
    sides = record["box"]["lower"], record["box"]["upper"]
    ratio = max(Fraction(high, low) for low, high in zip(*sides, strict=True))
    if record["total"] < 1:
        return ["the box holds no law of this total"]
    shared_mass = Fraction(sum(sides[0]), record["total"])
    if not (ratio >= 1 and 0 < shared_mass <= 1 <= ratio * shared_mass):
        return ["the box holds no law of this total"]
    lower = Fraction(0) if ratio == 1 else min(1 - shared_mass, ratio * shared_mass - 1) / (ratio - 1)
    upper = ratio * lower
    if [Fraction(corner) for corner in record["corners"]] != [lower, upper]:
        return ["the corners are not those of the box"]
    if box_keeps_promise(record, lower, upper):
        return []
    return [f"the box does not keep {promise_text(record['privacy'])}"]


def ratio_text(ratio: Fraction) -> str:
    """A few digits of a ratio that may be beyond every float."""
    with decimal.localcontext(CONTEXT):
        return f"{decimal.Decimal(ratio.numerator) / decimal.Decimal(ratio.denominator):.12g}"


def main(arguments: list[str]) -> int:
    """Check one certificate and print what is wrong with it, or that it holds.

    Args:
        arguments: the path of the certificate's file.

    Returns:
        The status of the process: 0 where it holds, 1 where it does not, 2 for what is no certificate.
    """
    if not is_list(arguments) or len(arguments) != 1 or type(arguments[0]) is not str:
        sys.stderr.write("usage: python verify.py CERTIFICATE\n")
        return 2
    try:
        with open(arguments[0], encoding="utf-8") as file:
            record = parse_certificate(file.read())
        faults = problems(record)
    except (OSError, ValueError, ArithmeticError, RecursionError) as error:
        message = f"{arguments[0]}: {getattr(error, 'strerror', None) or error}"
        sys.stderr.write(f"not a certificate: {ascii(message)[1:-1]}\n")  # escaped: no control characters
        return 2
    for problem in faults:
        sys.stdout.write(f"WRONG: {problem}\n")
    if not faults:
        inputs_text = f"the {len(record['inputs'])} inputs listed, and no others"
        scope = "any two inputs whatever, of a mechanism that keeps to the box" if "box" in record else inputs_text
        promise = f", and {promise_text(record['privacy'])}," if "privacy" in record else ""
        agreement = f", under agreement {record['agreement']}" if "agreement" in record else ""
        sys.stdout.write(f"holds: {record['epsilon']!r}-LDP{promise} between {scope}, in whole numbers{agreement}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
