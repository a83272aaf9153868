"""Re-verify a certificate of `discreet`: python verify.py CERTIFICATE. Standard library only; knows nothing of the mechanism.

Checks, in whole numbers: every row of weights sums to the same total; the stated worst ratio is the largest W_i(x)/W_j(x);
it is at most e^epsilon (bounded from below with 50 digits); all weights lie in the stated box, and the box's own ratio is at most
e^epsilon too. Exit status 0: the claim holds. 1: it does not, or the certificate contradicts itself. 2: not a certificate.
"""

import decimal
import json
import sys
from fractions import Fraction


def at_most_exp(epsilon: float) -> Fraction:
    """A rational certainly at most e^epsilon."""
    with decimal.localcontext() as context:
        context.prec = 50
        return Fraction(decimal.Decimal(min(epsilon, 700.0)).exp().next_minus())


def problems(record: dict) -> list[str]:  # type: ignore[type-arg]
    """Everything that is wrong with a certificate."""
    rows, bound, found = record["weights"], at_most_exp(float(record["epsilon"])), []
    if len(rows) < 2 or len({len(row) for row in rows}) != 1 or not rows[0]:
        return ["the table of weights is not rectangular, or has fewer than two inputs"]
    if any(type(weight) is not int or weight < 1 for row in rows for weight in row):
        return ["a weight is not a positive whole number"]
    if any(sum(row) != record["total"] for row in rows):
        found.append("a row does not sum to the total")
    largest = max(Fraction(max(column), min(column)) for column in zip(*rows, strict=True))
    if largest != Fraction(record["worst"]["ratio"]):
        found.append(f"the largest ratio is {largest}, not {record['worst']['ratio']}")
    if largest > bound:
        found.append(f"the ratio {float(largest):.12g} exceeds e^{record['epsilon']:g} = {float(bound):.12g}")
    box = record.get("box")
    if box is not None:
        lower, upper = box["lower"], box["upper"]
        if any(type(x) is not int or x < 1 for x in lower + upper) or not len(lower) == len(upper) == len(rows[0]):
            found.append("the box is not one of positive whole numbers")
        elif any(not low <= w <= high for row in rows for low, w, high in zip(lower, row, upper, strict=True)):
            found.append("a weight lies outside the box")
        elif max(Fraction(high, low) for low, high in zip(lower, upper, strict=True)) > bound:
            found.append(f"the box allows a ratio above e^{record['epsilon']:g}")
    return found


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python verify.py CERTIFICATE\n")
        return 2
    try:
        with open(arguments[0], encoding="utf-8") as file:
            record = json.load(file)
        if record["format"] != "discreet certificate" or record["version"] != 1:
            raise ValueError("unknown format or version")
        wrong = problems(record)
        scope = "any two inputs whatever" if "box" in record else f"the {len(record['inputs'])} inputs listed"
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
        sys.stderr.write(f"not a certificate: {error}\n")
        return 2
    for problem in wrong:
        sys.stdout.write(f"WRONG: {problem}\n")
    if not wrong:
        sys.stdout.write(f"holds: {record['epsilon']:g}-LDP between {scope}, in whole numbers\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
