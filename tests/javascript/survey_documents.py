"""Documents that are agreements on surveys, or nearly: what Python makes of each, for other implementations to repeat.

`changed_documents` differ from an agreement at one or two places. `edge_documents` are on both sides of every limit. `verdict` is the line
that says whether Python reads a document, and as which agreement.
"""

import copy
import datetime
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

import discreet as dc
from discreet.agreement import Agreement

_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2, 3, 7, 0.5, 1e-7, 1.5, 64, 65, 4096, 4097, 2**30, 2**30 + 1, 2**31, 2**32, 0xFFFFFFF9, 0xFFFFFFFA, 1e18,
    1e21, 1e300, -1e300, 1e101, "", "a", "1", "0.5", "f", "0f", "10000000000000000", "x" * 9, "2026-01-01", "2026-13-01", "20260101",
    "0000-01-01", "region", "amount", "day", [], {}, [1], [[1]], ["a"], ["a", "b"], [1, 2], [1.5], [True], [None], {"a": 1},
    {"kind": "values"},
    {"kind": "masks", "w": 1}, {"kind": "ranks", "w": 2}, {"kind": "affine", "q": 107, "t": 1, "c": 29}, {"kind": "windows", "w": 3},
    {"kind": "weighted", "blocks": ["1", "2"], "copies": ["1", "1"]}, {"columns": ["region"]}, {"column": "amount", "cells": 4},
    {"column": "amount", "points": 2}, {"shares": "region"}, {"mean": "amount"}, {"mean": ["amount"]}, {"quantiles": "amount"},
    {"histogram": "amount"}, {"linear": "region", "matrix": [1, 2]}, {"linear": "region", "matrix": [["1", 2]]}, {"name": "x", "size": 3},
    {"name": "x", "labels": ["a"]}, {"name": "x", "low": 0, "high": 1}, "windows", "weighted", "values", "masks", "ranks", "affine", "rows",
    "survey",
]  # fmt: skip
_FIELDS = [
    "kind", "columns", "column", "cells", "points", "question", "share", "sees", "blocks", "copies", "w", "q", "t", "c", "shares",
    "mean", "quantiles", "histogram", "linear", "matrix", "at", "weight", "name", "labels", "size", "low", "high", "unit", "first",
    "last", "survey", "questions", "parts", "other", "schedule", "privacy", "reference", "joint", "rounds", "purpose", "interval",
    "weights", "dim", "more", "__proto__", "toString",
]  # fmt: skip


def changed_documents(agreement: str, rng: np.random.Generator) -> Iterator[str]:
    """Documents that differ from an agreement at one or two places, without end."""
    base = json.loads(agreement)
    while True:
        document = copy.deepcopy(base)
        for _ in range(rng.choice([1, 1, 2])):
            _change(document, rng)
        if document.get("discreet") != 1:  # whose id only Python can compute
            yield json.dumps(document)


def _change(document: Any, rng: np.random.Generator) -> None:
    places = list(_places(document))
    deep = [place for place in places if len(place[1]) > 1]  # inside of the family or the survey
    owner, path = places[rng.integers(len(places))] if rng.random() < 0.2 or not deep else deep[rng.integers(len(deep))]
    name = path[-1]
    value = owner[name]
    match rng.integers(8):
        case 0 | 1:
            owner[name] = copy.deepcopy(_VALUES[rng.integers(len(_VALUES))])
        case 2:
            del owner[name]
        case 3 if isinstance(value, (int, float)) and not isinstance(value, bool):
            owner[name] = (
                value + [-1, 1, -0.5, 2**20][rng.integers(4)]
                if rng.random() < 0.7
                else value * [2, 0, 3, -1][rng.integers(4)]
            )
        case 4 if isinstance(owner, list):
            owner.insert(int(rng.integers(len(owner) + 1)), copy.deepcopy(owner[rng.integers(len(owner))]))
        case 5 if isinstance(value, dict):
            value[_FIELDS[rng.integers(len(_FIELDS))]] = copy.deepcopy(_VALUES[rng.integers(len(_VALUES))])
        case 6 if isinstance(owner, list):
            other = int(rng.integers(len(owner)))
            owner[name], owner[other] = owner[other], owner[name]
        case _:
            owner[name] = copy.deepcopy(_other_value(document, rng)) if rng.random() < 0.7 else [value]


def _other_value(document: Any, rng: np.random.Generator) -> Any:
    """What stands at another place."""
    places = list(_places(document))
    owner, path = places[rng.integers(len(places))]
    return owner[path[-1]]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """(owner, path) of every field and item."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield value, (*path, name)
        yield from _places(inner, (*path, name))


_REGION: dict[str, Any] = {"name": "region", "labels": ["a", "b", "c"]}
_AMOUNT: dict[str, Any] = {"name": "amount", "low": 0, "high": 1}
_MANY = {"name": "many", "size": 500_000}
_VALUES_ONLY, _WINDOW = {"kind": "values"}, {"kind": "windows", "w": 1}


def _document(columns: Any, questions: Any, parts: Any, **others: Any) -> str:
    family = {"kind": "rows", "columns": columns}
    terms = {"discreet": 2, "bits": 62, "mechanism": "survey", "epsilon": 1, "family": family}
    return json.dumps({**terms, "survey": {"questions": questions, "parts": parts}, **others})


def _part(sees: Any, blocks: Any = None, question: Any = 0, share: Any = 1) -> dict[str, Any]:
    return {"question": question, "share": share, "sees": sees, "blocks": _VALUES_ONLY if blocks is None else blocks}


_ASKED, _ANSWERED = [{"shares": "region"}], [_part({"columns": ["region"]})]


def edge_documents(rng: np.random.Generator) -> Iterator[str]:
    """Documents on both sides of every limit, and some that are spelled in another way."""
    yield from _column_edges()
    yield from _question_edges()
    yield from _part_edges()
    yield from _agreement_edges()
    for _ in range(60):
        yield _weighted_document(rng)


def _column_document(stated: dict[str, Any]) -> str:
    """A survey of one column, "x"."""
    if "low" in stated:
        return _document([{"name": "x", **stated}], [{"mean": "x"}], [_part({"column": "x", "points": 2}, _WINDOW)])
    return _document([{"name": "x", **stated}], [{"shares": "x"}], [_part({"columns": ["x"]})])


def _column_edges() -> Iterator[str]:
    for size in (1, 2, 10**7, 10**7 + 1, 0xFFFFFFF9, 0xFFFFFFFA, 2**40, "3", 2.0, 2.5, True, ["a", "b"]):
        yield _column_document({"size": size})
    days: list[tuple[Any, Any]] = [
        ("2026-01-01", "2026-01-02"), ("2026-01-01", "2025-12-31"), ("2026-01-01", "2026-01-01"), ("0001-01-01", "0002-01-01"), (2026, 2027),
        ("9999-01-01", "9999-12-31"), ("2024-02-29", "2024-03-01"), ("2025-02-29", "2025-03-01"), ("1900-01-01", "2079-06-06"), (None, None),
        ("1900-01-01", "2079-06-07"), ("20260101", "2026-01-02"), ("2026-01-01", "2026-01-02T00:00"), ("-001-01-01", "2026-01-01"),
        ("0000-12-31", "0001-01-02"), ("\uff12026-01-01", "2026-01-02"), ("2026-W01-1", "2026-02-01"),
    ]  # fmt: skip
    for first, last in days:
        yield _column_document({"first": first, "last": last})
    labels: list[Any] = [
        ["a"], ["a", "b"], ["a", "a"], [1, 2], [1, 1.0], [1, "1"], [1.5, 2], [True, False], [2**53, 2**53 + 1], [1e20, 2e20], [1e20, 1e21],
        [-0.0, 0], [-0.0, 1], [], "ab", 7, {"a": 1, "b": 2}, [["a"], ["b"]], [None, "a"], list(range(2**16)), list(range(2**16 + 1)),
        ["\ud800", "b"], ["", "\0"],
    ]  # fmt: skip
    for listed in labels:
        yield _column_document({"labels": listed})
    bounds: list[tuple[Any, Any]] = [
        (0, 1), (1, 0), (0, 0), (-0.0, 1), (0, 1e308), (-1e308, 1e308), (0, 5e-324), (1e16, 1e16 + 2), (1e16, 1e22), ("0", 1), (0, True),
        (None, 1), (0, 2**60),
    ]  # fmt: skip
    units: list[dict[str, Any]] = [
        {},
        {"unit": ""},
        {"unit": "m"},
        {"unit": 1},
        {"cells": 1},
        {"cells": 2**32},
        {"cells": 7},
        {"cells": 2, "unit": ""},
    ]
    for low, high in bounds:
        for more in units:
            yield _column_document({"low": low, "high": high, **more})
    for name in ("", "\0", "a\0b", " ", "\ud800", "name", "__proto__", "constructor", 1, None, ["x"]):
        yield _document([{"name": name, "size": 2}], [{"shares": name}], [_part({"columns": [name]})])
    for sizes in (
        [2**31, 2**31],
        [2**31, 2**31, 2],
        [2**31 - 1] * 2,
        [2] * 62,
        [2] * 63,
        [1] * 100,
        [1000, 10_000],
        [1000, 10_001],
    ):
        columns = [_REGION, *({"name": str(place), "size": size} for place, size in enumerate(sizes))]
        yield _document(columns, _ASKED, _ANSWERED)
        yield _document(columns[1:], [{"shares": ["0", "1"]}], [_part({"columns": ["0", "1"]})])
    began = datetime.date(1900, 1, 1)
    for lengths in (
        [65_533],
        [65_534],
        [32_000, 33_533],
        [32_000, 33_534],
        [65_535] * 5,
    ):  # beside the labels of the region
        lasts = [began + datetime.timedelta(days=length - 1) for length in lengths]
        dated = [{"name": f"d{place}", "first": f"{began}", "last": f"{last}"} for place, last in enumerate(lasts)]
        yield _document([_REGION, *dated], _ASKED, _ANSWERED)
        yield _document([*dated, _REGION], _ASKED, _ANSWERED)


def _question_edges() -> Iterator[str]:
    matrices: list[Any] = [
        [1, 2, 3], [[1, 2, 3]], [[1, 2, 3], [0, 0, 0]], [[1, 2]], [], [[]], [[1, 2, 3], [1, 2]], [[1, 2, "3"]], [[1, 2, None]],
        [[1, 2, True]],
        1, None, "123", [[1, 2, 1e100]], [[1, 2, 1.1e100]], [[[1, 2, 3]]], [1, [2], 3], {"a": 1}, [[-1e100, 0, 1e-300]],
    ]  # fmt: skip
    for matrix in matrices:
        yield _document([_REGION], [{"linear": "region", "matrix": matrix}], _ANSWERED)
        yield _document([_REGION], [{"linear": ["region"], "matrix": matrix}], _ANSWERED)
    yield _document([_REGION], [{"linear": "region"}], _ANSWERED)
    for weight in (1, 1.0, 1e-6, 9e-7, 1e6, 1000000.5, True, None, "1", -1):
        yield _document([_REGION], [{"shares": "region", "weight": weight}], _ANSWERED)
    of_tree = [_part({"column": "amount", "cells": 4})]
    levels: list[Any] = [[0.5], [], [0], [1], 0.5, "5", [True], [0.5, "0.5"], [1e-300], [0.5, 0.5], None, {"0.5": 1}]
    for at in levels:
        yield _document([_AMOUNT], [{"quantiles": "amount", "at": at}], of_tree)
    yield _document([_AMOUNT], [{"quantiles": "amount"}], of_tree)
    for cells in (1, 2, 4096, 4097, 20, None, 2.5):
        for own in (cells, 20):
            for column in (_AMOUNT, {**_AMOUNT, "cells": 20}):
                parts = [_part({"column": "amount", "cells": own})]
                yield _document([column], [{"histogram": "amount", "cells": cells}], parts)
    yield _document([_AMOUNT], [{"histogram": "amount"}], [_part({"column": "amount", "cells": 20})])
    questions: list[Any] = [
        None, [], {}, _ASKED[0], [None], [[]], ["region"], [{}], [{"shares": []}], [{"shares": ["region"]}],
        [{"shares": ["region", "region"]}],
        [{"shares": None}], [{"shares": {"region": 1}}], [{"shares": "region", "mean": "region"}], [{"shares": "region", "cells": None}],
        [{"mean": []}], [{"mean": ["region", "region"]}], [{"shares": "none"}], [{"mean": "region"}],
    ]  # fmt: skip
    for asked in questions:
        yield _document([_REGION], asked, _ANSWERED)


def _part_edges() -> Iterator[str]:
    trees = [
        [2], [3], [6], [2, 4], [4, 2], [2, 2], [2, 8, 64], [2, 6], [3, 9], [4, 16], [9, 27], [11], [5, 25], [7, 49], [10, 100], [4096],
        [8192],
        [2, 4096], [2401], [2, 3],
    ]  # fmt: skip
    for cells in trees:
        parts = [_part({"column": "amount", "cells": each}) for each in cells]
        yield _document([_AMOUNT], [{"quantiles": "amount"}], parts)
    for points, width in ((1, 1), (2, 1), (4096, 4096), (4097, 1), (2, 4097), (2, 0), (2, 2.5), (2.0, 1.0)):
        parts = [_part({"column": "amount", "points": points}, {"kind": "windows", "w": width})]
        yield _document([_AMOUNT], [{"mean": "amount"}], parts)
    for share in (0, 1, 2**30, 2**30 + 1, 0.5, -1, True, None, "1", 1.0):
        for question in (0, 1, -1, -2, 0.0, -0.0, None, False):
            yield _document([_REGION], _ASKED, [_part({"columns": ["region"]}, None, question, share)])
    columns = [_REGION, {"name": "n", "size": 40}, _AMOUNT, {"name": "more", "size": 2}]
    asked, answered = [*_ASKED, {"shares": "n"}], [*_ANSWERED, _part({"columns": ["n"]}, None, 1)]
    third = _part({"columns": ["more", "region"]}, None, 2)
    for sees in (
        ["region", "n"],
        ["n", "region"],
        ["region"],
        ["region"] * 2,
        ["region", "n", "more"],
        ["region", "amount"],
        [],
    ):
        for kind in (_VALUES_ONLY, {"kind": "ranks", "w": 2}, {"kind": "weighted", "blocks": ["1"], "copies": ["1"]}):
            wider = _part({"columns": sees}, kind, -1)
            yield _document(columns, asked, [*answered, wider])
            yield _document(columns, [*asked, {"shares": ["more", "region"]}], [*answered, third, wider])
            yield _document(columns, asked, [wider, *answered])
    ranked = {"kind": "ranks", "w": 2}
    for count in (1, 2, 3, 4097):  # parts; those by ranks have tables of binomial coefficients
        means = [_part({"column": "amount", "points": 2}, _WINDOW, 1)] * max(1, count - 1)
        parts = [_part({"columns": ["many"]}, ranked), *means]
        yield _document([_MANY, _AMOUNT], [{"shares": "many"}, {"mean": "amount"}], parts)
        parts = [_part({"columns": ["many"]}, ranked, place) for place in range(count)]
        yield _document([_MANY], [{"shares": "many"}] * count, parts)
    of_bits = [{"name": str(place), "size": size} for place, size in enumerate((63, 63, 64, 2))]
    for names in (
        ["0"],
        ["0", "1"],
        ["2"],
        ["2", "3"],
        ["0", "1", "3"],
        ["0", "1", "2"],
    ):  # masks take 2^63 or 2^64 numbers
        parts = [_part({"columns": [name]}, {"kind": "masks", "w": 1}, place) for place, name in enumerate(names)]
        yield _document(of_bits, [{"shares": name} for name in names], parts)
    affine: list[dict[str, Any]] = [
        {"q": 3, "t": 1, "c": 1}, {"q": 3, "t": 1, "c": 3}, {"q": 2, "t": 1, "c": 1}, {"q": 2, "t": 61, "c": 1}, {"q": 2, "t": 62, "c": 1},
        {"q": 2**31 - 1, "t": 1, "c": 2**31 - 2}, {"q": 4, "t": 1, "c": 1}, {"q": 1, "t": 1, "c": 1}, {"q": 3, "t": 0, "c": 1},
        {"q": 3, "t": 1, "c": 0}, {"q": 3, "t": 1}, {"q": 3, "t": 1, "c": 1, "w": None},
    ]  # fmt: skip
    for blocks in affine:
        yield _document([_REGION], _ASKED, [_part({"columns": ["region"]}, {"kind": "affine", **blocks})])
    two = {"kind": "weighted", "blocks": ["1", "2"], "copies": ["1", "1"]}
    three = {"kind": "weighted", "blocks": ["1", "2", "4"], "copies": ["1", "1", "1"]}
    sums = [{"linear": "region", "matrix": [1, 0, 0]}, {"linear": "more", "matrix": [1, 0]}]
    of_sums = [_part({"columns": ["region"]}, three), _part({"columns": ["more"]}, two, 1)]
    exchanged = [_part({"columns": ["more"]}, two), _part({"columns": ["region"]}, three, 1)]
    for parts in (of_sums, exchanged):
        yield _document(columns, sums, parts)
    others: list[Any] = [None, [], {}, _ANSWERED[0], [None], [[]], _ANSWERED * 2]
    for parts in others:
        yield _document([_REGION], _ASKED, parts)


def _agreement_edges() -> Iterator[str]:
    """Fields beside the survey, at their defaults, null, or out of place."""
    starts, periods = ("2026-01-01", "2026-01-02", "20260101", None, 1), ("day", "week", "month", "year", None)
    others: list[dict[str, Any]] = [
        {"rounds": 1}, {"rounds": 2.0}, {"purpose": ""}, {"purpose": "\ud800"}, {"other": None}, {"other": 0}, {"privacy": None},
        {"joint": None},
        {"reference": None}, {"blocks": None}, {"blocks": _VALUES_ONLY}, {"schedule": None}, {"mechanism": "reports"},
        {"mechanism": "optimal"},
        {"epsilon": 1e-13}, {"epsilon": 1e-12}, {"epsilon": 1e300}, {"epsilon": 0}, {"bits": 53}, {"survey": None}, {"survey": {}},
        {"survey": []},
        *({"schedule": {"start": start, "every": every}} for start in starts for every in periods),
        {"schedule": {"start": "2026-01-01"}}, {"schedule": {"start": "2026-01-01", "every": "day", "more": None}},
    ]  # fmt: skip
    for each in others:
        yield _document([_REGION], _ASKED, _ANSWERED, **each)
    fields = (
        "size labels interval lower upper weights everybody reference atoms dim box table density scale radius more"
    )
    for name in fields.split():
        for value in (None, 1):
            family = {"kind": "rows", "columns": [_REGION], name: value}
            yield _document([_REGION], _ASKED, _ANSWERED, family=family)
    columns: list[Any] = [
        None, [], {}, [None], [[]], [{}], [{"name": "region"}], [_REGION, _REGION], [{**_REGION, "more": 1}], [{**_REGION, "size": 3}],
        "region",
    ]  # fmt: skip
    for listed in columns:
        yield _document(listed, _ASKED, _ANSWERED)
    yield _document([_REGION], _ASKED, _ANSWERED, family={"kind": "rows"})
    yield _document([_REGION], _ASKED, _ANSWERED, family={"columns": [_REGION]})


def _weighted_document(rng: np.random.Generator) -> str:
    """Rotations of random blocks on a few outcomes, which tell everything or not; and sometimes one that is wrong."""
    size = int(rng.integers(2, 16))
    copies: dict[int, int] = {}
    for _ in range(rng.integers(1, 4)):
        members = rng.random(size) < rng.choice([0.2, 0.5, 0.8])
        members[0] = True
        step = int(rng.choice([1, 1, 2]))
        shifted = (np.flatnonzero(np.roll(members, step * shift)) for shift in range(size))
        rotated = {sum(1 << x for x in block.tolist()) for block in shifted}
        if not rotated & copies.keys():
            copies.update(dict.fromkeys(rotated, int(rng.choice([1, 5, 2**40, 2**57]))))
    masks = [f"{mask:x}" for mask in sorted(copies)]
    often = [f"{copies[mask]:x}" for mask in sorted(copies)]
    match rng.integers(8):
        case 0:
            masks[-1] = f"{1 << size:x}"
        case 1:
            masks = masks[::-1]
        case 2:
            often[0] = str(rng.choice(["0", "01", "F", "", "10000000000000000"]))
        case 3:
            masks[0] = str(rng.choice(["0", "01", "F", ""]))
    blocks = {"kind": "weighted", "blocks": masks, "copies": often}
    matrix = rng.integers(-2, 3, (2, size)).tolist()
    return _document(
        [{"name": "x", "size": size}], [{"linear": "x", "matrix": matrix}], [_part({"columns": ["x"]}, blocks)]
    )


def verdict(document: str) -> dict[str, Any]:
    """A line that says what Python makes of a document."""
    try:
        found = Agreement.from_json(document)
        return {"agreement": document, "id": found.id, "canonical": found.canonical, "cases": []}
    except dc.DiscreetError:
        return {"refused": document}
