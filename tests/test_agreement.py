"""An agreement is named by the digest of its canonical form. The golden texts and ids must never change."""

import hashlib
import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.agreement import labels_digest
from discreet.errors import DiscreetError

GOLDEN = [
    (
        dc.Agreement.of(dc.OptimalSampler(dc.Simplex(10), epsilon=1.0)),
        '{"bits":62,"discreet":1,"epsilon":1.0,"family":{"kind":"simplex","size":10},"mechanism":"optimal"}',
        "7c77cdbb4964b03bae6f945dce5346438e02310b6e1f4a3ffcbb49639ed5a586",
    ),
    (
        dc.Agreement.of(dc.LinearSampler(dc.Simplex(["no", "yes"]), epsilon=0.5), rounds=3, purpose="a vote"),
        '{"bits":62,"discreet":1,"epsilon":0.5,"family":{"kind":"simplex","labels":"sha256:'
        'a5203e023f404502e94ecdc6546427edfcacf6d1dbc44827ae5348f682c0d933","size":2},"mechanism":"linear",'
        '"purpose":"a vote","rounds":3}',
        "7913a813b50caff61dfdfa8bd9b1bb8e0ccdea66898bf01506a6fd4ce02fa621",
    ),
    (
        dc.Agreement.of(dc.OptimalSampler(dc.Simplex(64), epsilon=2.0), interval=(-1.5, 3.0)),
        '{"bits":62,"discreet":1,"epsilon":2.0,"family":{"interval":[-1.5,3.0],"kind":"simplex","size":64},'
        '"mechanism":"optimal"}',
        "7e7d4dc0ef9c8580d3927d9ce017f1315380f2d5a941315e5bd9c5d478bd1093",
    ),
    (
        dc.Agreement.of(dc.MollifierSampler(dc.Band([1, 2, 1], lower=0.5, upper=2.0), epsilon=1)),
        '{"bits":62,"discreet":1,"epsilon":1.0,"family":{"kind":"band","lower":0.5,"size":3,"upper":2.0,"weights":"sha256:'
        'ba0c29f3d865060f3f512c4c270fe82eb3822347b57b191fc4f51d9423fc8cb0"},"mechanism":"mollifier"}',
        "063787ab9703cb2e4263f4acfce3c87703c5238ba421b625b08622d78b594820",
    ),
]


@pytest.mark.parametrize(("agreement", "canonical", "name"), GOLDEN)
def test_golden_agreements(agreement: dc.Agreement, canonical: str, name: str) -> None:
    assert agreement.canonical == canonical
    assert agreement.id == name == hashlib.sha256(canonical.encode()).hexdigest()
    assert dc.Agreement.from_json(canonical) == agreement
    assert pickle.loads(pickle.dumps(agreement)) == agreement


@settings(deadline=None)
@given(st.floats(1e-6, 100.0), st.integers(1, 10**9), st.integers(1, 50), st.text())
def test_an_agreement_reads_back_as_itself(epsilon: float, size: int, rounds: int, purpose: str) -> None:
    sampler = dc.OptimalSampler(dc.Simplex(size), epsilon=epsilon)
    agreement = dc.Agreement.of(sampler, rounds=rounds, purpose=purpose)
    spaced = json.dumps(json.loads(agreement.canonical), indent=3, sort_keys=False)
    assert dc.Agreement.from_json(spaced).id == agreement.id


def test_every_term_changes_the_id() -> None:
    def named(k: Any = 3, epsilon: float = 1.0, mechanism: Any = dc.OptimalSampler, **terms: Any) -> str:
        return dc.Agreement.of(mechanism(dc.Simplex(k), epsilon=epsilon), **terms).id

    ids = [
        named(),
        named(4),
        named(["a", "b", "c"]),
        named(["a", "c", "b"]),
        named([1, 2, 3]),
        named(["1", "2", "3"]),
        named(epsilon=1.0000000000000002),
        named(mechanism=dc.LinearSampler),
        named(rounds=2),
        named(purpose="x"),
        named(interval=(0.0, 1.0)),
    ]
    assert len(set(ids)) == len(ids)


def test_labels_keep_their_type() -> None:
    assert labels_digest([1, 2]) != labels_digest(["1", "2"])
    assert labels_digest(["a,b", "c"]) != labels_digest(["a", "b,c"])
    with pytest.raises(DiscreetError, match="cannot stand in an agreement"):
        labels_digest([("a", "b")])


def altered(**fields: Any) -> str:
    return json.dumps({**json.loads(GOLDEN[0][1]), **fields})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[]", "not a JSON object"),
        ("{", "not JSON"),
        (altered(discreet=2), "discreet = 2"),
        (altered(bits=61), "bits = 61"),
        (altered(epsilon="1"), "epsilon = '1' is not a number"),
        (altered(epsilon=-1), "epsilon = -1"),
        (altered(mechanism="best"), "mechanism = 'best'"),
        (altered(rounds=0), "rounds = 0"),
        (altered(rounds=1.5), "rounds = 1.5"),
        (altered(purpose=7), "purpose = 7"),
        (altered(colour="red"), "field 'colour'"),
        (altered(family=[]), "family = \\[\\]"),
        (altered(family={"kind": "simplex"}), "no field 'size'"),
        (altered(family={"kind": "circle", "size": 2}), "family.kind = 'circle'"),
        (altered(family={"kind": "simplex", "size": 0}), "family.size = 0"),
        (altered(family={"kind": "simplex", "size": 2, "labels": "x"}), "family.labels = 'x'"),
        (altered(family={"kind": "simplex", "size": 2, "interval": [1, 0]}), "family.interval"),
        (altered(family={"kind": "simplex", "size": 2, "interval": ["a", "b"]}), "family.interval = 'a'"),
        (altered(family={"kind": "band", "size": 2, "lower": None, "upper": 2}), "family.lower"),
    ],
)
def test_an_error_names_the_field(text: str, named: str) -> None:
    with pytest.raises(DiscreetError, match=named):
        dc.Agreement.from_json(text)


def test_only_what_can_be_said_is_agreed_on() -> None:
    own = dc.MollifierSampler(dc.Simplex(2), epsilon=1.0, reference=[0.3, 0.7])
    with pytest.raises(DiscreetError, match="cannot be agreed on yet"):
        dc.Agreement.of(own)
    with pytest.raises(DiscreetError, match="Unicode"):
        _ = dc.Agreement.of(dc.OptimalSampler(dc.Simplex(2), epsilon=1.0), purpose="\ud800").id
    with pytest.raises(DiscreetError, match="round = 3 is more than the 2 agreed on"):
        dc.Agreement.of(dc.OptimalSampler(dc.Simplex(2), epsilon=1.0), rounds=2).check_round(3)
