"""Agreements: one canonical form, an id that never changes, errors that name the field, samplers that come back."""

import errno
import hashlib
import json
import math
import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from discreet import (
    Band,
    DiscreetError,
    JointSampler,
    LinearSampler,
    MollifierSampler,
    OptimalSampler,
    Simplex,
)
from discreet.agreement import MOST_LISTED, VERSION, Agreement, FamilyTerms, OwnTerms
from discreet.domain import Digested, Interval, Labels, json_hook_refusing_repeated_fields
from discreet.mechanisms._sampler import Sampler
from tests.soaking import examples, wide
from tests.strategies import bands, epsilons, sizes

GOLDEN = Path(__file__).parent / "agreements"
SKEWED = Band([1, 2, 3, 4.5], lower=0.25, upper=1.75)
COLOURS = Simplex(["red", "grün", "蓝", 4])
MADE: dict[str, tuple[Sampler[Any], dict[str, Any]]] = {
    "simplex": (OptimalSampler(Simplex(10), epsilon=1.0), {}),
    "labels": (LinearSampler(COLOURS, epsilon=0.1), {"rounds": 12, "purpose": "Colours of 2013 — “public” use"}),
    "band": (MollifierSampler(SKEWED, epsilon=1 / 3), {}),
    "cells": (OptimalSampler(Simplex(Interval(-0.5, 1e300, cells=100)), epsilon=2), {}),
}
IDS = {
    1: {
        "simplex": "7c77cdbb4964b03bae6f945dce5346438e02310b6e1f4a3ffcbb49639ed5a586",
        "labels": "b17624d608cf3d0b69805bd37cf309d1cdce437cdf3129f97df392203584a560",
        "band": "90689372195f26b4f6a7c666b353df4124fee1174af18eff6e69a88428aff1e2",
        "cells": "12630e208518561b6feeda7c88249b5481b9cb644cd3041877b0a575f4f6c587",
    },
    2: {
        "simplex": "ce9453d8ad967336f02dcc9346a35a8398d6707ba2c90f076e3588a6f164cc6a",
        "labels": "bf5f6481f19c50c2f3e5ae4a332633dc8c01a95dd55938cd4a2e49c16455428c",
        "band": "625403bfbebd47c080adf403f9a30f53740ddd498d1131013d8cdc4df66558e2",
        "cells": "e73f9bee630c9db6a947a715311e3e0eb676e1b0a3b8391192f4587b260cdddf",
    },
}
VERSIONS = sorted(IDS)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", sorted(MADE))
def test_agreements_made_before_read_the_same_for_ever(name: str, version: int) -> None:
    """The files are records of what was once agreed: never regenerate them."""
    sampler, options = MADE[name]
    path, known = GOLDEN / str(version) / f"{name}.json", IDS[version][name]
    read, made = Agreement.read(path), Agreement.of(sampler, **options, version=version)
    assert read == made
    assert read.id == made.id == known
    text = path.read_bytes()
    assert text == made.canonical.encode() + b"\n"
    assert hashlib.sha256(text[:-1]).hexdigest() == known  # anybody can compute it
    assert made.sampler(sampler.family) == sampler
    read.check_sampler(sampler)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_with_labels_made_before_reads_the_same_for_ever(version: int) -> None:
    """As `labels.json`, but with the labels themselves: the same agreement."""
    sampler, options = MADE["labels"]
    path = GOLDEN / str(version) / "listed.json"
    read = Agreement.read(path)
    assert read.id == IDS[version]["labels"]
    assert read.sampler() == sampler
    assert path.read_text(encoding="utf-8") == Agreement.of(sampler, **options, version=version).text + "\n"


def test_one_agreement_in_two_versions_is_two_agreements() -> None:
    sampler, _ = MADE["simplex"]
    assert {Agreement.of(sampler, version=version) for version in VERSIONS} == {
        Agreement.read(GOLDEN / str(version) / "simplex.json") for version in VERSIONS
    }
    assert Agreement.of(sampler).version == VERSION == max(VERSIONS)
    for version in (0, 3, True, 2.0, "2", None):
        with pytest.raises(DiscreetError, match="is not one of the versions 1, 2; upgrade discreet"):
            Agreement.of(sampler, version=version)  # type: ignore[arg-type]


def test_labels_that_are_numbers_keep_the_digest_of_their_version() -> None:
    """Version 1 wrote 1.0 and 1e-05 and whole numbers of any size; version 2 writes 1 and 0.00001, and no number that readers mistake."""
    sampler = OptimalSampler(Simplex([1.0, 1e-5, -0.0, 2.5]), epsilon=1.0)
    for version, listed in ((1, "[1.0,1e-05,-0.0,2.5]"), (2, "[1,0.00001,0,2.5]")):
        made = Agreement.of(sampler, version=version)
        assert f'"labels":{listed}' in made.text
        assert made.document["family"]["labels"] == "sha256:" + hashlib.sha256(listed.encode()).hexdigest()
        again = Agreement.from_json(made.text)
        assert (again.version, again.id, again.sampler()) == (version, made.id, sampler)
        assert Agreement.from_json(made.canonical).sampler(sampler.family) == sampler
    wide = Agreement.of(OptimalSampler(Simplex([2.482001538383807e16, 0]), epsilon=1.0), rounds=10**18 - 128)
    assert ("24820015383838070" in wide.text, Agreement.from_json(wide.text)) == (
        True,
        wide,
    )  # digits that are not the number's own
    large = OptimalSampler(Simplex([2**53 + 1, 0]), epsilon=1.0)
    old = Agreement.of(large, version=1)
    assert Agreement.from_json(old.text).sampler() == large
    with pytest.raises(DiscreetError, match=r"9007199254740993 is not a 64-bit float.* write it as a text"):
        _ = Agreement.of(large).id
    beyond = old.text.replace('"discreet":1', '"discreet":2').replace("9007199254740993", "1" + "0" * 400)
    with pytest.raises(DiscreetError, match="holds a number that no 64-bit float"):
        Agreement.from_json(beyond)


def test_what_a_reader_made_of_a_document_is_not_its_text() -> None:
    """Fields given twice would be gone already, and bytes may be of another encoding than UTF-8."""
    text = Agreement.of(OptimalSampler(COLOURS, epsilon=1.0)).text
    read: list[Any] = [json.loads(text), text.encode("utf-16"), None]
    for document in read:
        with pytest.raises(DiscreetError, match="is not a str; pass the JSON text itself"):
            Agreement.from_json(document)


@pytest.mark.parametrize("text", ["", "hello", '{"a": 1'])
def test_a_file_that_is_not_json_is_named_with_what_to_give_instead(text: str, tmp_path: Path) -> None:
    path = tmp_path / "agreed.json"
    path.write_text(text)
    with pytest.raises(
        DiscreetError, match=rf"^{path}: the agreement is not JSON: .*; give the file that `discreet agree`"
    ):
        Agreement.read(path)


@pytest.mark.slow
@given(st.data(), st.sampled_from([OptimalSampler, LinearSampler, MollifierSampler]))
@settings(deadline=None, max_examples=wide(100, 10))
def test_samplers_come_back_from_agreements_and_pickles(data: st.DataObject, kind: type[Sampler[Any]]) -> None:
    family = data.draw(st.one_of(bands(20), sizes(20).map(Simplex)))
    sampler = kind(family, epsilon=data.draw(epsilons(1e-3, 20.0)))
    agreed = Agreement.of(sampler, rounds=data.draw(st.integers(1, 10**6)), purpose=data.draw(st.text(max_size=20)))
    again = Agreement.from_json(agreed.canonical)
    assert (again, again.id) == (agreed, agreed.id)
    spaced = json.dumps(json.loads(agreed.canonical), indent=3, sort_keys=False)
    assert Agreement.from_json(spaced).id == agreed.id
    again.check_sampler(sampler)
    rebuilt, unpickled = again.sampler(family), pickle.loads(pickle.dumps(sampler))
    assert rebuilt == unpickled == sampler
    law = np.full(family.size, 1 / family.size) if isinstance(family, Simplex) else np.asarray(family._mu)
    assert rebuilt.weights(law).tolist() == unpickled.weights(law).tolist() == sampler.weights(law).tolist()
    assert pickle.loads(pickle.dumps(again)) == agreed


def test_every_term_changes_the_id() -> None:
    base = Agreement.of(OptimalSampler(Simplex(3), epsilon=1.0))
    others = [
        Agreement.of(OptimalSampler(Simplex(4), epsilon=1.0)),
        Agreement.of(OptimalSampler(Simplex(["a", "b", "c"]), epsilon=1.0)),
        Agreement.of(OptimalSampler(Simplex(["a", "c", "b"]), epsilon=1.0)),
        Agreement.of(OptimalSampler(Simplex([1, 2, 3]), epsilon=1.0)),
        Agreement.of(OptimalSampler(Simplex(["1", "2", "3"]), epsilon=1.0)),
        Agreement.of(OptimalSampler(Simplex(3), epsilon=math.nextafter(1.0, 2.0))),
        Agreement.of(LinearSampler(Simplex(3), epsilon=1.0)),
        Agreement.of(OptimalSampler(Band([1, 1, 1], lower=0.0, upper=3.0), epsilon=1.0)),
        Agreement.of(OptimalSampler(Band([1, 1, 2], lower=0.0, upper=3.0), epsilon=1.0)),
        Agreement.of(OptimalSampler(Simplex(3), epsilon=1.0), rounds=2),
        Agreement.of(OptimalSampler(Simplex(3), epsilon=1.0), purpose="x"),
        Agreement.of(OptimalSampler(Simplex(Interval(0.0, 1.0, cells=3)), epsilon=1.0)),
    ]
    assert Agreement.of(OptimalSampler(Simplex(3), epsilon=1.0), rounds=np.int8(2)).id == others[-3].id  # type: ignore[arg-type]
    assert len({base.id, *(other.id for other in others)}) == len(others) + 1


def test_a_record_of_another_agreement_is_refused_with_both_ids() -> None:
    mine, theirs = (Agreement.of(OptimalSampler(Simplex(3), epsilon=e)) for e in (1.0, 2.0))
    mine.check_record(mine.id)
    with pytest.raises(DiscreetError) as caught:
        mine.check_record(theirs.id)
    assert mine.id in str(caught.value)
    assert theirs.id in str(caught.value)


def test_a_family_that_was_not_agreed_on_is_refused_by_field() -> None:
    agreed = Agreement.from_json(Agreement.of(OptimalSampler(COLOURS, epsilon=1.0)).canonical)
    with pytest.raises(DiscreetError, match="digest of its labels; pass the family"):
        agreed.sampler()
    with pytest.raises(DiscreetError, match="digest of its weights; pass the family"):
        Agreement.from_json(Agreement.of(OptimalSampler(SKEWED, epsilon=1.0)).canonical).sampler()
    wrong: list[tuple[Simplex | Band, str]] = [
        (Simplex(4), "family.labels = None"),
        (Simplex(5), "family.size = 5"),
        (SKEWED, "family.kind = 'band'"),
    ]
    for family, says in wrong:
        with pytest.raises(DiscreetError) as caught:
            agreed.sampler(family)
        assert says in str(caught.value)
    with pytest.raises(DiscreetError, match=r"family\.weights"):
        Agreement.of(OptimalSampler(SKEWED, epsilon=1.0)).sampler(Band([1, 2, 3, 4], lower=0.25, upper=1.75))


VALID: dict[str, Any] = json.loads((GOLDEN / "1" / "band.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("discreet", 3, "discreet = 3 is not one of the versions 1, 2"),
        ("discreet", True, "discreet = True is not one of the versions 1, 2"),
        ("bits", 53, "bits = 53"),
        ("mechanism", "best", "mechanism = 'best'"),
        ("mechanism", [], "mechanism = []"),
        ("epsilon", -1, "epsilon = -1"),
        ("epsilon", "1", "epsilon = '1' is not a number"),
        ("epsilon", True, "epsilon = True"),
        ("epsilon", 10**400, "epsilon = inf"),
        ("epsilon", math.nan, "epsilon = nan"),
        ("rounds", 0, "rounds = 0"),
        ("rounds", 1.5, "rounds = 1.5"),
        ("purpose", 5, "purpose = 5"),
        ("extra", 1, "'extra'"),
        ("family", [], "family = []"),
        ("family.kind", "ball", "family.kind = 'ball'"),
        ("family.kind", {}, "family.kind = {}"),
        ("family.kind", "simplex", "has no meaning for a simplex"),
        ("family.kind", None, "family.kind = None is not one of simplex, band, gaussian mixtures"),
        ("family.kind", [], "family.kind = [] is not one of simplex"),
        ("family.radius", 1.0, "family.radius has no meaning for a band"),
        ("family.size", 0, "family.size = 0"),
        ("family.size", None, "family.size = None"),
        ("family.lower", 1.5, "lower < 1 < upper"),
        ("family.upper", math.inf, "family.upper = inf"),
        ("family.weights", "sha256:xyz", "family.weights"),
        ("family.weights", None, "family.weights is missing"),
        ("family.reference", [1, 0.5, 0.25], "family.reference is not a list of 4 weights"),
        ("family.reference", "much", "family.reference is not a list of 4 weights"),
        ("family.reference", [1, 0.5, 0.25, 0.0], "entry 3: 0 is not in (0, 1]"),
        ("family.reference", [1, 0.5, 0.25, math.nan], "entry 3: nan is not in (0, 1]"),
        ("family.reference", [1, 0.5, 0.25, 10**400], "no float can"),
        ("family.reference", [1, 0.5, 0.25, True], "family.reference[3] = True"),
        ("family.reference", [1, 0.5, 0.25, "1"], "family.reference[3] = '1'"),
        ("family.labels", "sha256:" + "g" * 64, "family.labels"),
        ("family.labels", [], "family.labels lists 0 labels for family.size = 4"),
        ("family.labels", ["a", "b", "c", None], "family.labels[3] = None"),
        ("family.labels", ["a", "b", "c", ["d"]], "family.labels[3] = ['d']"),
        ("family.labels", [1, 2, 3, math.nan], "family.labels[3] = nan"),
        ("family.labels", [1, 2, 3, math.inf], "finite numbers only"),
        ("family.labels", ["a", "b", "c", "\ud800"], "UTF-8"),
        ("family.labels", ["a", "b", "c", "a"], "family.labels lists 'a' twice"),
        ("family.labels", [1, 2, 3, 1.0], "family.labels lists 1.0 twice"),
        ("family.labels", 4, "family.labels = 4"),
        ("family.interval", [1, 0], "family.interval"),
        ("family.interval", [None, 1], "family.interval[0] = None"),
        ("family.interval", [0, math.nan], "family.interval[1] = nan"),
        ("family.more", 1, "'more'"),
    ],
)
def test_errors_name_the_field(path: str, value: Any, says: str) -> None:
    document = json.loads(json.dumps(VALID))
    *parents, last = path.split(".")
    place = document
    for parent in parents:
        place = place[parent]
    place[last] = value
    with pytest.raises(DiscreetError) as caught:
        Agreement.from_json(json.dumps(document))
    assert says in str(caught.value)


@pytest.mark.parametrize("field", ["discreet", "family", "mechanism", "epsilon", "bits"])
def test_a_missing_field_is_named(field: str) -> None:
    with pytest.raises(DiscreetError, match=f"no field '{field}'"):
        Agreement.from_json(json.dumps({key: value for key, value in VALID.items() if key != field}))


@pytest.mark.parametrize(
    "text", ["", "nonsense", "[]", "null", "{" * 5, "[" * 100_000, "1" * 5_000, '{"epsilon": 1, "epsilon": 2}']
)
def test_what_is_no_agreement_is_refused(text: str) -> None:
    with pytest.raises(DiscreetError):
        Agreement.from_json(text)


def test_files(tmp_path: Path) -> None:
    agreed = Agreement.of(OptimalSampler(Simplex(3), epsilon=1.0), purpose="été")
    agreed.write(tmp_path / "a.json")
    assert Agreement.read(tmp_path / "a.json") == agreed
    before = (tmp_path / "a.json").read_bytes()
    agreed.write(tmp_path / "a.json")  # it is there already
    other = Agreement.of(OptimalSampler(Simplex(3), epsilon=2.0))
    with pytest.raises(DiscreetError, match=f"exists already and holds agreement {agreed.id}, not {other.id}"):
        other.write(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_bytes() == before
    (tmp_path / "c.json").write_text("something else")
    with pytest.raises(DiscreetError, match="exists already and holds no agreement"):
        agreed.write(tmp_path / "c.json")
    assert (tmp_path / "c.json").read_text() == "something else"
    os.mkfifo(tmp_path / "pipe")
    for never_ends in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(DiscreetError, match="exists already and holds no agreement"):
            agreed.write(never_ends)
    agreed.write(tmp_path / "new" / "folder" / "a.json")
    assert Agreement.read(tmp_path / "new" / "folder" / "a.json") == agreed
    with pytest.raises(DiscreetError, match="its folder cannot be made"):
        agreed.write(tmp_path / "c.json" / "a.json")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    with pytest.raises(DiscreetError, match="UTF-8"):
        Agreement.read(tmp_path / "b.json")
    with pytest.raises(DiscreetError, match="UTF-8"):
        _ = Agreement.of(OptimalSampler(Simplex(3), epsilon=1.0), purpose="\ud800").id


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    [
        COLOURS,
        Simplex([1, 2.5, "x"]),
        Simplex([np.str_("p"), np.int64(2)]),
        Band(np.ones(3), lower=0.5, upper=2, labels=["a", "b", "c"]),
    ],
)
def test_a_file_that_lists_its_labels_is_all_that_is_needed(family: Simplex | Band, tmp_path: Path) -> None:
    sampler = OptimalSampler(family, epsilon=0.5)
    agreed = Agreement.of(sampler, rounds=2)
    agreed.write(tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert family.labels is not None
    document_labels = document["family"]["labels"]
    assert document_labels == list(family.labels)
    read = Agreement.read(tmp_path / "a.json")
    assert read.domain == Labels(family.labels)
    assert read.sampler() == sampler
    document["family"]["labels"] = agreed.document["family"]["labels"]  # the digest, as in the canonical form
    short = Agreement.from_json(json.dumps(document))
    assert isinstance(short.domain, Digested)
    assert read == short == agreed
    assert hash(read) == hash(short)
    assert read.id == short.id == agreed.id
    assert read.canonical == short.canonical == short.text
    document["family"]["labels"] = document_labels[::-1]
    assert Agreement.from_json(json.dumps(document)).id != agreed.id
    assert pickle.loads(pickle.dumps(read)).domain == read.domain


def test_labels_that_are_not_those_of_the_digest_are_refused() -> None:
    terms = Agreement.from_json(Agreement.of(OptimalSampler(COLOURS, epsilon=1.0)).canonical).on_outcomes
    with pytest.raises(DiscreetError, match=r"family\.labels = 'sha256"):
        terms.on(Labels(["red", "green", "blue", 4]))
    assert terms.on(COLOURS.domain) == terms == FamilyTerms.of(COLOURS)
    assert terms.on(COLOURS.domain).family() == COLOURS


def test_half_an_agreement_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    agreed = Agreement.of(OptimalSampler(COLOURS, epsilon=1.0))
    with monkeypatch.context() as full:
        full.setattr(Agreement, "text", property(failing))
        with pytest.raises(DiscreetError, match="No space left"):
            agreed.write(tmp_path / "a.json")
    assert not (tmp_path / "a.json").exists()
    agreed.write(tmp_path / "a.json")


def test_a_band_of_absurd_size_is_refused_without_trying() -> None:
    document = json.loads(json.dumps(VALID))
    document["family"]["size"] = 10**17
    with pytest.raises(DiscreetError, match="pass the family"):
        Agreement.from_json(json.dumps(document)).sampler()


def test_many_fields_are_read_in_time_that_grows_with_their_number() -> None:
    """A field that is given twice among very many is found by counting each once, not by comparing each with each."""
    compared = 0

    class Name(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    fields: list[tuple[str, Any]] = [(Name(f"field {number}"), 1) for number in range(2000)]
    with pytest.raises(DiscreetError, match="gives 'field 1999' twice"):
        json_hook_refusing_repeated_fields("the agreement")([*fields, (Name("field 1999"), 2)])
    assert compared < 10 * len(fields)


def test_an_agreement_on_bounds_that_no_law_attains_names_another_mechanism() -> None:
    """Band([1, 1], .5, 3) holds the laws of (.5, 1.5) and is released as such: an older agreement on the loose bounds is not that."""
    made = Agreement.of(OptimalSampler(Band([1, 1], lower=0.5, upper=3.0), epsilon=1.0))
    assert isinstance(made.family, FamilyTerms)
    assert (made.family.lower, made.family.upper) == (0.5, 1.5)
    older = replace(made.family, upper=3.0)
    with pytest.raises(DiscreetError, match="no distribution attains both"):
        older.family()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::discreet.errors.OutsideFamilyWarning")
@given(st.data())
@settings(deadline=None, max_examples=examples(60))
def test_a_file_that_lists_its_weights_is_all_that_is_needed(data: st.DataObject) -> None:
    """The same id, the same band and the same integers, whatever the weights and bounds are and wherever they were rounded."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    weights = np.exp(-data.draw(st.sampled_from([0.1, 5.0, 300.0])) * rng.random(data.draw(st.integers(2, 30))))
    family = Band(weights, lower=0.0, upper=1.0 + float(rng.exponential()), any_client=data.draw(st.booleans()))
    agreed = Agreement.of(OptimalSampler(family, epsilon=data.draw(epsilons(1e-3, 9.0))))
    again = Agreement.from_json(agreed.text)
    assert (again.id, again) == (agreed.id, agreed) == (Agreement.from_json(agreed.canonical).id, agreed)
    sampler = again.sampler()
    assert (sampler.family, sampler) == (family, OptimalSampler(family, epsilon=agreed.epsilon))
    law = rng.dirichlet(np.full(family.size, 0.3))
    assert sampler.weights(law).tolist() == OptimalSampler(family, epsilon=agreed.epsilon).weights(law).tolist()


def test_weights_that_were_changed_are_refused() -> None:
    document = json.loads(Agreement.of(OptimalSampler(SKEWED, epsilon=1.0)).text)
    document["family"]["reference"][0] *= 1.0 + 1e-15
    with pytest.raises(DiscreetError, match="not those whose digest is sha256:"):
        Agreement.from_json(json.dumps(document)).sampler()


def test_a_file_whose_weights_are_not_those_of_its_id_is_not_read() -> None:
    agreed = Agreement.of(OptimalSampler(Band([3, 2, 1], lower=0.2, upper=1.4), epsilon=1.0))
    forged = json.loads(agreed.text)
    forged["family"]["reference"] = [1.0, 0.5, 0.25]
    with pytest.raises(DiscreetError, match="are not those whose digest is"):
        Agreement.from_json(json.dumps(forged))
    del forged["family"]["reference"]
    assert Agreement.from_json(json.dumps(forged)) == agreed


def test_many_weights_are_kept_in_a_file_beside_the_agreement(tmp_path: Path) -> None:
    size = MOST_LISTED + 1
    family = Band(1.0 + np.arange(size), lower=0.0, upper=3.0, any_client=True)
    agreed = Agreement.of(OptimalSampler(family, epsilon=1.0))
    path, weights = tmp_path / "a.json", tmp_path / "a.json.weights"
    agreed.write(path)
    assert "reference" not in json.loads(path.read_text())["family"]
    again = Agreement.read(path)
    assert (again.id, again.sampler()) == (agreed.id, OptimalSampler(family, epsilon=1.0))
    agreed.write(path)  # it holds that already
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-8])
    with pytest.raises(DiscreetError, match="holds 524,288 bytes, not the 65,537 weights"):
        Agreement.read(path)
    weights.write_bytes(whole[8:] + whole[:8])
    with pytest.raises(DiscreetError, match="not those whose digest"):
        Agreement.read(path).sampler()
    weights.unlink()
    with pytest.raises(DiscreetError, match=r"digest of its weights; pass the family.*\.weights at the end"):
        Agreement.read(path).sampler()
    path.unlink()
    weights.write_text("something else")
    with pytest.raises(DiscreetError, match=r"file of weights .* exists already"):
        agreed.write(path)
    assert not path.exists()


def test_the_outcome_that_values_outside_count_as_is_a_term() -> None:
    sampler = LinearSampler(Simplex(["red", "green", "other"]), epsilon=1.0)
    plain, agreed = Agreement.of(sampler), Agreement.of(sampler, other="other")
    assert "other" not in plain.document  # so that agreements made before keep their ids
    assert agreed.document["other"] == 2
    assert agreed.id != plain.id
    assert Agreement.from_json(agreed.text) == agreed
    agreed.check_sampler(sampler)
    with pytest.raises(DiscreetError, match="unknown labels"):
        Agreement.of(sampler, other="blue")


@pytest.mark.parametrize(
    ("number", "word"), [(3, "outcomes 0 to 2"), (-1, "less than 0"), (True, "whole number"), ("red", "whole number")]
)
def test_the_number_of_that_outcome_is_checked(number: object, word: str) -> None:
    document = Agreement.of(LinearSampler(Simplex(["red", "green", "other"]), epsilon=1.0)).document
    with pytest.raises(DiscreetError, match=word):
        Agreement.from_json(json.dumps({**document, "other": number}))


def test_an_interval_has_no_such_outcome() -> None:
    sampler = LinearSampler(Simplex(Interval(0.0, 1.0, cells=4)), epsilon=1.0)
    with pytest.raises(DiscreetError, match="nearest end"):
        Agreement.of(sampler, other=0.1)


JOINT = [
    JointSampler(Simplex(["red", "green", "blue"]), samples=3, epsilon=2.0),
    JointSampler(Simplex(4), samples=2, epsilon=1.0, around="product"),
    JointSampler(Band([3, 2, 1], lower=0.5, upper=1.5), samples=2, epsilon=0.5),
]


@pytest.mark.parametrize("joint", JOINT)
def test_several_samples_drawn_at_once_are_agreed_on(joint: JointSampler, tmp_path: Path) -> None:
    agreed = Agreement.of(joint, purpose="several")
    assert agreed.document["joint"] == {"samples": joint.samples, "around": joint.around}
    assert Agreement.from_json(agreed.text) == agreed
    agreed.write(tmp_path / "a.json")
    found = Agreement.read(tmp_path / "a.json")
    assert found.id == agreed.id
    assert found.joint_sampler() == joint
    law = np.broadcast_to(joint.family.reference, joint.family.size)
    assert found.joint_sampler().weights(law).tolist() == joint.weights(law).tolist()
    with pytest.raises(DiscreetError, match="samples of each client drawn together"):
        found.sampler()
    single = Agreement.of(OptimalSampler(joint.family, epsilon=joint.epsilon), purpose="several")
    assert single.id != agreed.id
    assert "joint" not in single.document
    with pytest.raises(DiscreetError, match="one sample of each client at a time"):
        single.joint_sampler()
    with pytest.raises(DiscreetError, match="belongs to agreement"):
        single.check_sampler(joint)


def test_joint_terms_that_are_none_are_refused_by_name() -> None:
    text = json.loads(Agreement.of(JOINT[1]).text)
    wrong: list[tuple[Any, str]] = [
        ({"samples": 1, "around": "product"}, "joint.samples = 1 is less than 2"),
        ({"samples": 2.5, "around": "product"}, "joint.samples = 2.5 is not a whole number"),
        ({"samples": 2, "around": "middle"}, "joint.around = 'middle' is not one of envelope, product"),
        ({"samples": 2, "around": ["product"]}, "joint.around"),
        ({"samples": 2}, "joint has no field 'around'"),
        ({"samples": 2, "around": "product", "more": 1}, "joint has a field 'more' that this version does not know"),
        (3, "joint = 3 is not a JSON object"),
    ]
    for joint, says in wrong:
        with pytest.raises(DiscreetError) as caught:
            Agreement.from_json(json.dumps({**text, "joint": joint}))
        assert says in str(caught.value)
    with pytest.raises(DiscreetError, match="joint has no meaning for the mechanism linear"):
        Agreement.from_json(json.dumps({**text, "mechanism": "linear"}))
    band = Band([1] * 10, lower=0.0, upper=2.0)
    with pytest.raises(DiscreetError, match="without a band= of their own"):
        Agreement.of(JointSampler(Simplex(4), samples=2, epsilon=1.0, band=band))
    with pytest.raises(DiscreetError, match=r"one by one; agree on Agreement.of\(sampler.share, rounds=2\)"):
        Agreement.of(LinearSampler(Simplex(4), epsilon=1.0).with_samples(2))
    with pytest.raises(DiscreetError, match="one sample is agreed on as OptimalSampler"):
        Agreement.of(JointSampler(Simplex(4), samples=1, epsilon=1.0))


def test_the_id_of_an_agreement_on_several_samples_is_fixed() -> None:
    """The box is computed by operations that every machine rounds alike: the envelope's total is a rational number."""
    assert Agreement.of(JOINT[0]).id == "0ce9e671f1ff074fa1a434b19670ec22268cc060a17e33c2bbe2570432035fbe"
    assert hashlib.sha256(np.asarray(JOINT[0].lattice.lower).tobytes()).hexdigest()[:16] == "55164dcd88c09064"
    assert hashlib.sha256(np.asarray(JOINT[2].lattice.lower).tobytes()).hexdigest()[:16] == "c93acf04c4933949"


def test_parameters_nested_too_deeply_are_an_error_of_ours() -> None:
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(DiscreetError, match="nested too deeply"):
        OwnTerms("x", "package", "1", f"sha256:{'0' * 64}", {"a": deep})
