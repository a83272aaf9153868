import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet import Agreement, JointSampler, OptimalSampler, Simplex
from discreet.audit import verify
from tests.pictures import assert_picture

Run = Callable[..., Any]
Refusal = Callable[..., str]

MECHANISMS = """
import numpy as np
rng = np.random.default_rng(0)
def respond(value, n):
    return np.where(rng.random(n) < 0.7, value, 1 - value)
def broken(value, n):
    raise RuntimeError("out of order")
def leave(value, n):
    raise SystemExit(0)
number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audited_mechanisms.py").write_text(MECHANISMS)
    monkeypatch.delitem(sys.modules, "audited_mechanisms", raising=False)
    return tmp_path


INPUTS = ("--input", "0", "--input", "1", "--draws", "20000")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["audited_mechanisms:respond", "audited_mechanisms.py:respond"])
def test_a_false_claim_fails_and_a_true_one_passes(run: Run, folder: Path, name: str) -> None:
    refuted = run("audit", name, "--epsilon", "0.5", *INPUTS, "--plot", "out/audit.png")
    assert refuted.exit_code == 1, refuted.output
    assert "REFUTED" in refuted.stdout
    assert "empirical_epsilon_lower_bound 0.8" in refuted.stdout
    assert_picture(folder / "out" / "audit.png")
    passed = run("audit", name, "--epsilon", "0.9", *INPUTS, "--json")
    assert passed.exit_code == 0
    record = json.loads(passed.stdout)
    assert record["refuted"] is False
    assert 0.75 < record["empirical_epsilon_lower_bound"] < 0.85
    assert record["events"][0]["draws"] == 10_000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("audited_mechanisms", "--epsilon", "1"), "MODULE:CALLABLE"),
        (("audited_mechanisms:number", "--epsilon", "1"), "no callable 'number'"),
        (("audited_mechanisms:missing.part", "--epsilon", "1"), "no callable 'missing.part'"),
        (("no_such_module:f", "--epsilon", "1"), "no_such_module cannot be imported"),
        (("no_such_file.py:f", "--epsilon", "1"), "no_such_file.py cannot be imported"),
        (("audited_mechanisms:respond", "--epsilon", "1"), "0 inputs"),
        (("audited_mechanisms:respond", "--epsilon", "nan", *INPUTS), "epsilon = nan"),
        (("audited_mechanisms:broken", "--epsilon", "1", *INPUTS), "RuntimeError: out of order"),
        (("audited_mechanisms:leave", "--epsilon", "1", *INPUTS), "failed on input 0 with SystemExit: 0"),
        (
            ("audited_mechanisms:respond", "--epsilon", "1", "--input", "[" * 5000, "--input", "b"),
            "failed on input '[[[",
        ),
        (("audited_mechanisms:respond", "--epsilon", "1", "--input", "a", "--input", "b"), "failed on input 'a'"),
    ],
)
def test_mistakes_get_one_line(refusal: Refusal, folder: Path, arguments: tuple[str, ...], says: str) -> None:
    assert says in refusal("audit", *arguments)


def test_a_module_that_ends_the_process_is_a_mistake(refusal: Refusal, folder: Path) -> None:
    """Its status 0 would say that the claim stands."""
    (folder / "script.py").write_text("import sys\nsys.exit(0)\n")
    assert "script.py cannot be imported: SystemExit: 0" in refusal("audit", "script.py:f", "--epsilon", "1", *INPUTS)


def test_inputs_that_are_not_finite_are_null_in_json(run: Run, folder: Path) -> None:
    (folder / "constant.py").write_text("def f(value, n):\n    return [0] * n\n")
    inputs = ("--input", "NaN", "--input", '{"a": [1e999, 1]}')
    result = run("audit", "constant.py:f", "--epsilon", "1", "--draws", "200", *inputs, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout, parse_constant=pytest.fail)["inputs"] == [None, {"a": [None, 1]}]


@pytest.mark.parametrize("mechanism", ["optimal", "linear", "mollifier"])
def test_certify_writes_what_the_script_verifies(run: Run, tmp_path: Path, mechanism: str) -> None:
    path = tmp_path / "certificate.json"
    result = run("certify", "--outcomes", "6", "--epsilon", "0.7", "--mechanism", mechanism, "-o", str(path))
    assert result.exit_code == 0, result.output
    assert "(holds)" in result.stdout
    subprocess.run([sys.executable, "-I", "-S", verify.__file__, str(path)], check=True, capture_output=True)
    banded = run("certify", "--outcomes", "6", "--epsilon", "0.7", "--lower", "0.5", "--upper", "2", "-o", str(path))
    assert "0.7" in banded.stdout


@pytest.mark.parametrize(
    ("options", "says"),
    [(["--epsilon", "0.7", "--delta", "1e-4"], "(0.7, 0.0001)-LDP"), (["--nu", "1"], "1-Gaussian LDP")],
)
def test_certify_states_other_promises(run: Run, tmp_path: Path, options: list[str], says: str) -> None:
    path = tmp_path / "certificate.json"
    result = run("certify", "--outcomes", "6", *options, "-o", str(path))
    assert f"and {says} (holds)" in result.stdout
    assert verify.main([str(path)]) == 0
    record = json.loads(run("certify", "--outcomes", "6", *options, "-o", str(path), "--json").stdout)
    assert record["privacy"]["kind"] in ("approximate", "gaussian")


def test_certify_names_the_agreement(run: Run, tmp_path: Path) -> None:
    agreed, path = tmp_path / "agreement.json", tmp_path / "certificate.json"
    agreement = Agreement.of(OptimalSampler(Simplex(["tea", "coffee"]), epsilon=1.0))
    agreement.write(agreed)
    assert agreement.id in run("certify", "--agreement", str(agreed), "-o", str(path)).stdout
    record = json.loads(run("certify", "--agreement", str(agreed), "-o", str(path), "--json").stdout)
    assert record["agreement"] == agreement.id == json.loads(path.read_text())["agreement"]
    assert verify.main([str(path)]) == 0


def test_certify_prints_json(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    record = json.loads(run("certify", "--outcomes", "6", "--epsilon", "0.7", "-o", str(path), "--json").stdout)
    assert (record["certificate"], record["epsilon"], record["holds"]) == (str(path), 0.7, True)
    assert record["realised"]["low"] <= record["realised"]["high"] <= record["possible"] <= 0.7
    assert path.is_file()


def test_certify_refuses_unknown_mechanisms(refusal: Refusal, tmp_path: Path) -> None:
    out = str(tmp_path / "c.json")
    assert "'best' is not one of" in refusal(
        "certify", "--outcomes", "3", "--epsilon", "1", "--mechanism", "best", "-o", out
    )
    assert "epsilon = 0" in refusal("certify", "--outcomes", "3", "--epsilon", "0", "-o", out)
    (tmp_path / "file").touch()
    under = str(tmp_path / "file" / "c.json")
    assert "c.json" in refusal("certify", "--outcomes", "3", "--epsilon", "1", "-o", under)


def test_certify_takes_its_terms_once(refusal: Callable[..., str], tmp_path: Path) -> None:
    out = ("-o", str(tmp_path / "c.json"))
    assert "--outcomes K and --epsilon E (or --nu NU), or --agreement FILE" in refusal(
        "certify", "--epsilon", "1", *out
    )
    assert "--agreement states the sampler" in refusal("certify", "--agreement", "a.json", "--epsilon", "1", *out)


@pytest.mark.parametrize("around", ["envelope", "product"])
def test_certify_takes_an_agreement_on_samples_drawn_at_once(run: Run, tmp_path: Path, around: Any) -> None:
    agreed, path = tmp_path / "agreement.json", tmp_path / "certificate.json"
    agreement = Agreement.of(JointSampler(Simplex(["tea", "coffee", "milk"]), samples=3, epsilon=1.0, around=around))
    agreement.write(agreed)
    done = run("certify", "--agreement", str(agreed), "-o", str(path), "--json")
    assert done.exit_code == 0, done.output
    record, written = json.loads(done.stdout), json.loads(path.read_text())
    assert record["holds"]
    assert record["realised"]["high"] <= 1.0
    assert record["agreement"] == agreement.id == written["agreement"]
    assert verify.main([str(path)]) == 0
    assert {len(row) for row in written["weights"]} == {10}  # multisets of three of three outcomes
    for samples in (2, 4, 10**30, "3"):  # the text of another agreement, with its own id
        text = json.dumps({**agreement.document, "joint": {"samples": samples, "around": around}})
        forged = {**written, "agreement_text": text, "agreement": hashlib.sha256(text.encode()).hexdigest()}
        assert verify.problems(forged) == ["the outcomes are not as many as agreed on"]


OWN = """
import functools, math
import numpy as np
import discreet as dc

class Mine(dc.OwnSampler):
    name = "mine"
    def __init__(self, family, *, epsilon=None, privacy=None, spread=1.0):
        self.spread = spread
        super().__init__(family, epsilon=epsilon, privacy=privacy)
    @property
    def parameters(self):
        return {"spread": self.spread}
    def law(self, p):
        growth = math.exp(self.spread * self.epsilon)
        return ((growth - 1) * p + 1) / (growth - 1 + len(p))
    @property
    def floor(self):
        k = self.family.size
        return np.full(k, 1 / (math.exp(self.spread * self.epsilon) - 1 + k))

half = functools.partial(Mine, spread=0.5)
made = Mine(dc.Simplex(3), epsilon=1.0)

class Liar:
    name, family, privacy = "liar", dc.Simplex(2), dc.privacy.Pure(0.5)
    def __init__(self, family=None, *, epsilon=0.5):
        pass
    def output(self, p):
        return np.asarray(p)
    def release(self, p, *, rng=None):
        rows = np.atleast_2d(np.asarray(p, dtype=float))
        return np.array([np.random.default_rng().choice(2, p=row) for row in rows])

liar = Liar()
"""


@pytest.fixture
def own(folder: Path) -> Path:
    (folder / "own_mechanisms.py").write_text(OWN)
    return folder


FEW = ("--draws", "4000", "--json")


@pytest.mark.parametrize(
    ("words", "claim", "refuted"),
    [
        (("own_mechanisms.py:made",), 1.0, False),
        (("own_mechanisms.py:made", "--epsilon", "0.3"), 0.3, True),
        (("own_mechanisms.py:Mine", "--outcomes", "3", "--epsilon", "2"), 2.0, False),
        (("own_mechanisms.py:half", "--outcomes", "3", "--epsilon", "2"), 2.0, False),
        (("optimal", "--outcomes", "3", "--epsilon", "2"), 2.0, False),
        (("own_mechanisms.py:liar",), 0.5, True),
        (("own_mechanisms.py:made", "--input", "[1, 0, 0]", "--input", "[0.5, 0.5, 0]"), 1.0, False),
    ],
)
def test_mechanisms_are_audited_by_name(
    run: Run, own: Path, words: tuple[str, ...], claim: float, refuted: bool
) -> None:
    result = run("audit", *words, *FEW)
    assert result.exit_code == int(refuted), result.output
    record = json.loads(result.stdout)
    assert (record["epsilon"], record["refuted"]) == (claim, refuted)
    assert record["empirical_epsilon_lower_bound"] is not None


def test_parameters_of_a_partial_change_the_law(run: Run, own: Path) -> None:
    """At epsilon = 4 the whole spread realises 4 and half of it 2: a claim of 2.2 is refuted for the first alone."""
    for name, refuted in (("Mine", True), ("half", False)):
        made = f"{name.lower()}_at_4"
        (own / f"{made}.py").write_text(
            f"import discreet as dc\nfrom own_mechanisms import {name}\nmade = {name}(dc.Simplex(2), epsilon=4.0)\n"
        )
        result = run("audit", f"{made}:made", "--epsilon", "2.2", *FEW)
        assert json.loads(result.stdout)["refuted"] is refuted


def test_an_agreement_says_what_is_audited(run: Run, tmp_path: Path, install: Any) -> None:
    path = tmp_path / "agreed.json"
    Agreement.of(install()(Simplex(3), epsilon=1.0, spread=0.5)).write(path)
    record = json.loads(run("audit", "--agreement", str(path), *FEW).stdout)
    assert (record["epsilon"], record["refuted"]) == (1.0, False)
    named = run("audit", "reveal-or-obscure", "--outcomes", "3", "--epsilon", "1", *FEW)
    assert json.loads(named.stdout)["epsilon"] == 1.0
    joint = tmp_path / "joint.json"
    Agreement.of(JointSampler(Simplex(3), samples=2, epsilon=1.0)).write(joint)
    assert json.loads(run("audit", "--agreement", str(joint), *FEW).stdout)["refuted"] is False


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "audit takes a mechanism"),
        (("own_mechanisms.py:made", "--agreement", "x.json"), "audit takes a mechanism"),
        (("own_mechanisms.py:Mine",), "is a class of mechanisms; say --outcomes K and --epsilon E"),
        (("own_mechanisms.py:Mine", "--outcomes", "3"), "is a class of mechanisms"),
        (("own_mechanisms.py:half", "--epsilon", "3"), "is a class of mechanisms"),
        (
            ("nobody", "--epsilon", "3"),
            "is not MODULE:CALLABLE, as in mechanisms:respond, and no installed package offers",
        ),
        (("audited_mechanisms:respond", *INPUTS), "epsilon is not given"),
    ],
)
def test_mechanisms_that_cannot_be_audited(refusal: Refusal, own: Path, words: tuple[str, ...], says: str) -> None:
    assert says in " ".join(refusal("audit", *words).split())
