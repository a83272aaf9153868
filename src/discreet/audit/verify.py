"""Re-verify a certificate of `discreet`: python verify.py CERTIFICATE. Standard library only; knows nothing of the mechanism.

A certificate is data from a stranger: it has exactly the fields below, each of exactly its type, given once, and nothing is taken on
its word that can be computed. Checked, in whole numbers:

* there is one name for each row of weights, all names differ, and every row sums to the stated total;
* the stated worst ratio is the largest W_i(x)/W_j(x), at the stated place, and its logarithm lies where it is said to;
* it is at most e^epsilon (bounded from below with 50 digits), and the certificate itself says that the claim holds;
* where there is a box, all weights lie in it, and its own ratio is at most e^epsilon too.

That proves epsilon-LDP between the inputs listed and, with a box, between any inputs whose weights lie in it. That a mechanism draws
with these weights and keeps to that box is what no file can prove.
Exit status 0: the claim holds. 1: it does not, or the certificate contradicts itself. 2: not a certificate.
"""

import decimal
import json
import math
import re
import sys
from fractions import Fraction
from typing import Any

FIELDS = {
    "format", "version", "mechanism", "epsilon", "inputs", "total", "weights", "worst", "realised_epsilon", "holds"
}  # fmt: skip
WORST = {"outcome", "first_input", "second_input", "ratio"}
RATIONAL = re.compile("[0-9]{1,1000}(/[1-9][0-9]{0,999})?")
CONTEXT = decimal.Context(prec=50, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
FINER = decimal.Context(prec=90, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def at_most_exp(epsilon: float) -> Fraction:
    """A rational certainly at most e^epsilon, and at least 1."""
    with decimal.localcontext(CONTEXT):
        return max(Fraction(1), Fraction(decimal.Decimal(min(epsilon, 700.0)).exp().next_minus()))


def log_bounds(ratio: Fraction) -> tuple[Fraction, Fraction]:
    """Rationals certainly at most and at least log(ratio), for a ratio of at least 1."""
    with decimal.localcontext(FINER):
        quotient = decimal.Decimal(ratio.numerator) / decimal.Decimal(ratio.denominator)
        low = max(quotient.next_minus(), decimal.Decimal(1)).ln()
        return Fraction(low.next_minus() if low else low), Fraction(quotient.next_plus().ln().next_plus())


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, none of whose fields is given twice: readers would differ on which one counts."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field is given twice")
    return found


def no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def parsed(text: str) -> dict[str, Any]:
    """What a file says that calls itself a certificate; a ValueError if it is none."""
    record: dict[str, Any] = json.loads(text, object_pairs_hook=once, parse_constant=no_number)
    require(isinstance(record, dict) and record.get("format") == "discreet certificate", "unknown format")
    require(is_whole(record.get("version")) and record["version"] == 1, "unknown version")
    return record


def check_form(record: dict[str, Any]) -> None:
    """Every field is there, of its type, and fits the others; a ValueError says which does not."""
    require(FIELDS <= record.keys() <= FIELDS | {"box"}, "its fields are not those of a certificate")
    epsilon = record["epsilon"]
    require(type(epsilon) in (int, float) and 0 < epsilon < math.inf, "epsilon is not a positive number")
    require(type(record["mechanism"]) is str, "mechanism is not a text")
    require(type(record["holds"]) is bool, "holds is neither true nor false")
    rows, names = record["weights"], record["inputs"]
    require(is_list(rows) and len(rows) >= 2 and all(is_list(row) for row in rows), "weights are not two rows or more")
    require(bool(rows[0]) and len({len(row) for row in rows}) == 1, "rows of weights are not equally long")
    require(all(is_whole(w) and w >= 1 for row in rows for w in row), "a weight is not a positive whole number")
    require(is_whole(record["total"]), "the total is not a whole number")
    require(is_list(names) and all(type(name) is str and name for name in names), "inputs is not a list of names")
    require(len(names) == len(rows), f"{len(names)} inputs are named for {len(rows)} rows of weights")
    require(len(set(names)) == len(names), "two inputs have the same name")
    worst, bounds = record["worst"], record["realised_epsilon"]
    require(isinstance(worst, dict) and worst.keys() == WORST, "worst does not name an outcome, two inputs and a ratio")
    for place, size in (("outcome", len(rows[0])), ("first_input", len(rows)), ("second_input", len(rows))):
        require(is_whole(worst[place]) and 0 <= worst[place] < size, f"worst.{place} is not one of {size}")
    require(is_list(bounds) and len(bounds) == 2, "realised_epsilon is not two numbers")
    for rational in (worst["ratio"], *bounds):
        require(
            type(rational) is str and RATIONAL.fullmatch(rational) is not None, "a ratio or bound is not a rational"
        )
    if "box" in record:
        box = record["box"]
        require(isinstance(box, dict) and box.keys() == {"lower", "upper"}, "the box is not a lower and an upper bound")
        for side in box.values():
            require(is_list(side) and len(side) == len(rows[0]), "the box does not have a bound for each outcome")
            require(all(is_whole(x) and x >= 1 for x in side), "the box is not one of positive whole numbers")


def require(right: bool, wrong: str) -> None:
    if not right:
        raise ValueError(wrong)


def is_whole(value: object) -> bool:
    return type(value) is int  # neither True nor 1.0


def is_list(value: object) -> bool:
    return type(value) is list


def problems(record: dict[str, Any]) -> list[str]:
    """Everything that is wrong with a certificate."""
    try:
        check_form(record)
    except ValueError as wrong:
        return [str(wrong)]
    rows, worst, bound, found = record["weights"], record["worst"], at_most_exp(record["epsilon"]), []
    if any(sum(row) != record["total"] for row in rows):
        found.append("a row does not sum to the total")
    largest = max(Fraction(max(column), min(column)) for column in zip(*rows, strict=True))
    if Fraction(worst["ratio"]) != largest:
        found.append(f"the largest ratio is {shown(largest)}, not the one stated")
    first, second = (rows[worst[which]][worst["outcome"]] for which in ("first_input", "second_input"))
    if Fraction(first, second) != largest:
        found.append("the largest ratio is not at the place stated")
    low, high = map(Fraction, record["realised_epsilon"])
    least, most = log_bounds(largest)
    if not (low <= least and most <= high and high - low < Fraction(1, 10**40)):
        found.append("the realised epsilon is not where it is said to be")
    if largest > bound:
        found.append(f"the ratio {shown(largest)} exceeds e^{record['epsilon']!r} = {shown(bound)}")
    if not record["holds"]:
        found.append("the certificate itself says that the claim does not hold")
    if "box" in record:
        lower, upper = record["box"]["lower"], record["box"]["upper"]
        if any(not low <= w <= high for row in rows for low, w, high in zip(lower, row, upper, strict=True)):
            found.append("a weight lies outside the box")
        if max(Fraction(high, low) for low, high in zip(lower, upper, strict=True)) > bound:
            found.append(f"the box allows a ratio above e^{record['epsilon']!r}")
    return found


def shown(ratio: Fraction) -> str:
    """A few digits of a ratio that may be past every float."""
    with decimal.localcontext(CONTEXT):
        return f"{decimal.Decimal(ratio.numerator) / decimal.Decimal(ratio.denominator):.12g}"


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python verify.py CERTIFICATE\n")
        return 2
    try:
        with open(arguments[0], encoding="utf-8") as file:
            record = parsed(file.read())
        wrong = problems(record)
    except (OSError, ValueError, ArithmeticError, RecursionError) as error:
        sys.stderr.write(f"not a certificate: {ascii(str(error))[1:-1]}\n")  # nothing in it can hide a line
        return 2
    for problem in wrong:
        sys.stdout.write(f"WRONG: {problem}\n")
    if not wrong:
        listed = f"the {len(record['inputs'])} inputs listed, and no others"
        scope = "any two inputs whatever, of a mechanism that keeps to the box" if "box" in record else listed
        sys.stdout.write(f"holds: {record['epsilon']!r}-LDP between {scope}, in whole numbers\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
