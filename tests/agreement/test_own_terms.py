"""Agreements on mechanisms of one's own: named by package, version and box, and drawn by ledgers and tables as agreed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import discreet as dc
from discreet import Agreement, DiscreetError, OwnSampler, Simplex
from discreet.audit import certificate, verify
from discreet.cli._app import app
from discreet.ledger import Budget, Ledger
from discreet.tables import sample
from tests.mechanism_packages import Install


def test_an_agreement_names_package_version_and_box(install: Install, tmp_path: Path) -> None:
    kind = install()
    sampler = kind(Simplex(["a", "b", "c"]), epsilon=1.0, spread=0.5)  # type: ignore[call-arg]
    agreement = Agreement.of(sampler, rounds=2, purpose="a trial")
    document = agreement.document
    assert document["mechanism"] == "own"
    assert document["own"]["package"] == "obscurity"
    assert document["own"]["package_version"] == "1.2"
    assert document["own"]["parameters"] == {"spread": 0.5}
    agreement.write(tmp_path / "agreed.json")
    read = Agreement.read(tmp_path / "agreed.json")
    assert read.id == agreement.id
    assert read.sampler() == sampler
    with pytest.raises(DiscreetError, match="belongs to agreement"):
        read.check_sampler(kind(Simplex(["a", "b", "c"]), epsilon=1.0))


def test_the_command_names_the_mechanism(install: Install, tmp_path: Path) -> None:
    Agreement.of(install()(Simplex(["a", "b"]), epsilon=1.0)).write(tmp_path / "agreed.json")
    result = CliRunner().invoke(app, ["agree", "--check", str(tmp_path / "agreed.json")])
    assert result.exit_code == 0, result.output
    assert "reveal-or-obscure of obscurity 1.2" in " ".join(result.stdout.split())


def test_the_box_is_what_was_agreed_on(install: Install) -> None:
    """Code that changed without a new version is refused: privacy is a statement about the box."""
    agreement = Agreement.of(install()(Simplex(3), epsilon=1.0, spread=0.9))  # type: ignore[call-arg]
    install(factor=0.99)
    with pytest.raises(DiscreetError, match="has another box here than the one agreed on"):
        agreement.sampler()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"version": "1.3"}, r"obscurity 1\.2, and obscurity 1\.3 is installed; install obscurity==1\.2"),
        ({"package": "obscurer"}, r"obscurity 1\.2, and obscurer 1\.2 is installed"),
        ({"target": "obscurity:math"}, "not a class of OwnSampler"),
        ({"target": "obscurity:nothing"}, "cannot be loaded"),
        ({"target": "nowhere:nothing"}, "cannot be loaded"),
    ],
)
def test_another_package_is_refused(install: Install, changed: dict[str, str], said: str) -> None:
    agreement = Agreement.of(install()(Simplex(3), epsilon=1.0))
    install(**changed)
    with pytest.raises(DiscreetError, match=said):
        agreement.sampler()


def test_what_no_package_offers_is_not_agreed_on(install: Install) -> None:
    kind = install()
    sampler = OwnSampler.of(Simplex(2), np.full((2, 2), 0.5), epsilon=1.0)
    with pytest.raises(DiscreetError, match="no installed package offers the mechanism 'own'; one does by"):
        Agreement.of(sampler)
    like = type("Like", (kind,), {})
    with pytest.raises(DiscreetError, match="offers another class as 'reveal-or-obscure'"):
        Agreement.of(like(Simplex(2), epsilon=1.0))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.pop("own"), "belong together"),
        (lambda d: d.update(mechanism="linear"), "belong together"),
        (lambda d: d["own"].update(package=""), "own.package = ''"),
        (lambda d: d["own"].update(name=3), "own.name = 3"),
        (lambda d: d["own"].update(box="sha256:0"), "own.box"),
        (lambda d: d["own"].update(parameters=[]), "own.parameters"),
        (lambda d: d["own"].update(more=1), "own has a field 'more'"),
        (lambda d: d["own"].pop("package_version"), "own has no field 'package_version'"),
        (lambda d: d.update(joint={"samples": 2, "around": "product"}), "without reference, joint"),
    ],
)
def test_wrong_documents_are_refused(install: Install, change: Callable[[Any], Any], said: str) -> None:
    document = json.loads(Agreement.of(install()(Simplex(3), epsilon=1.0)).text)
    change(document)
    with pytest.raises(DiscreetError, match=said):
        Agreement.from_json(json.dumps(document))


def test_parameters_that_the_class_does_not_take(install: Install) -> None:
    document = json.loads(Agreement.of(install()(Simplex(3), epsilon=1.0)).text)
    document["own"]["parameters"] = {"sharpness": 3}
    with pytest.raises(DiscreetError, match="does not take the parameters agreed on"):
        Agreement.from_json(json.dumps(document)).sampler()


def test_a_certificate_of_the_agreement_verifies(install: Install, tmp_path: Path) -> None:
    agreement = Agreement.of(install()(Simplex(3), epsilon=1.0))
    found = certificate(agreement.sampler(), agreement=agreement)
    assert found.holds
    found.write(tmp_path / "certificate.json")
    assert verify.main([str(tmp_path / "certificate.json")]) == 0


def test_a_ledger_charges_and_remembers(install: Install, tmp_path: Path) -> None:
    agreement = Agreement.of(install()(Simplex(["a", "b", "c"]), epsilon=1.0), rounds=2)
    ledger = Ledger.create(tmp_path / "ledger", Budget(epsilon=2.0))
    sampler = agreement.sampler()
    first = ledger.release(sampler, [1.0, 0.0, 0.0], agreement=agreement)
    assert first in ("a", "b", "c")
    assert all(ledger.release(sampler, [0.0, 0.0, 1.0], agreement=agreement) == first for _ in range(20))
    ledger.release(sampler, [1.0, 0.0, 0.0], agreement=agreement, round=2)
    with pytest.raises(dc.BudgetError):
        ledger.release(sampler, [1.0, 0.0, 0.0], agreement=Agreement.of(sampler, rounds=3), round=3)


def test_a_table_is_drawn_by_the_own_law(install: Install) -> None:
    """The projection onto its box, which is drawn for samplers of ours, would give another share."""
    sampler = install()(Simplex(["a", "b", "c"]), epsilon=2.0)
    agreement = Agreement.of(sampler)
    number = 3_000
    held = pl.DataFrame({"client": np.repeat(np.arange(number), 4), "value": ["a", "a", "a", "b"] * number})
    shares = sampler.output([0.75, 0.25, 0.0])
    for terms in ({"agreement": agreement}, {"sampler": sampler}):
        drawn: Any = sample(held, client="client", value="value", **terms)
        drawn = drawn.to_pydict() if hasattr(drawn, "to_pydict") else drawn.to_dict(as_series=False)
        found = np.array([drawn["sample"].count(label) for label in "abc"]) / number
        assert set(drawn["agreement"]) == {agreement.id}
        assert np.abs(found - shares).max() < 5 * 0.5 / number**0.5
    wrong = sampler.box.project([0.75, 0.25, 0.0])
    assert np.abs(wrong - shares).max() > 0.05


def test_a_client_without_records_draws_from_the_reference(install: Install) -> None:
    agreement = Agreement.of(install()(Simplex(["a", "b"]), epsilon=1.0))
    listed = list(range(10))
    held = pl.DataFrame({"client": [0], "value": ["a"]})
    drawn: Any = sample(held, client="client", value="value", agreement=agreement, clients=listed)
    assert len(drawn) == 10


def test_a_class_cannot_change_the_parameters_agreed_on(install: Install) -> None:
    """It is handed a copy, and parameters that it cannot compute with are one of our errors."""
    code = (
        "\nRevealOrObscure.from_parameters = classmethod("
        "lambda kind, family, privacy, given: kind(family, privacy=privacy, spread=given.pop('spread')))\n"
    )
    agreement = Agreement.of(install(code=code)(Simplex(["a", "b", "c"]), epsilon=1.0, spread=0.5))  # type: ignore[call-arg]
    first = agreement.sampler()
    assert agreement.own is not None
    assert agreement.own.parameters == {"spread": 0.5}
    assert agreement.sampler().parameters == first.parameters == {"spread": 0.5}
    document = json.loads(agreement.text)
    document["own"]["parameters"] = {"spread": 1e308}
    with pytest.raises(DiscreetError, match="does not take the parameters agreed on"):
        Agreement.from_json(json.dumps(document)).sampler()
