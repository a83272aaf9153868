"""`discreet design --from`: from files of private samples to an agreement on a design, or on the safe sampler, and says which."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import discreet as dc
from discreet.agreement import Agreement, purpose_with_sources
from discreet.collect import open_store
from discreet.collect._serving import _add_agreements_to_store
from discreet.design import concentration_law, learn

Run = Callable[..., Any]

LABELS = [f"place {number}" for number in range(10)]
SIMPLEX = dc.Simplex(LABELS)
DESIGN = ("design", "--epsilon", "2", "-q")


def written(name: str, sampler: Any, laws: np.ndarray, who: str, purpose: str = "") -> Agreement:
    """A file of samples as `discreet sample` writes them, and its agreement."""
    agreement = Agreement.of(sampler, purpose=purpose)
    if not Path(f"{name}.json").exists():
        agreement.write(f"{name}.json")
    pl.DataFrame(
        {
            "client": [f"{who}{number}" for number in range(len(laws))],
            "sample": [str(one) for one in sampler.release(laws)],
            "agreement": [agreement.id] * len(laws),
        }
    ).write_parquet(f"{name}.parquet")
    return agreement


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rounds of other clients, one about their spread, and a few clients who say next to nothing."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    laws = rng.dirichlet(6 * np.geomspace(1, 0.02, 10) / np.geomspace(1, 0.02, 10).sum(), 4_000)
    mollifier = dc.MollifierSampler(SIMPLEX, epsilon=2.0)
    written("first", mollifier, laws[:2_000], "a")
    written("second", dc.OptimalSampler(SIMPLEX, epsilon=2.0), laws[2_000:3_000], "b")
    two = dc.OptimalSampler(dc.Simplex(["spread out", "of one kind"]), epsilon=2.0)
    written("spread", two, concentration_law(laws[3_000:]), "c")
    written("few", dc.OptimalSampler(SIMPLEX, epsilon=0.1), laws[:5], "d")


def counted(name: str) -> np.ndarray:
    samples = pl.read_parquet(f"{name}.parquet")["sample"].to_list()
    return np.array([samples.count(label) for label in LABELS])


PAIRS = (
    "--from",
    "first.parquet",
    "--agreement",
    "first.json",
    "--from",
    "second.parquet",
    "--agreement",
    "second.json",
)
SPREAD = ("--spread", "spread.parquet", "--spread-agreement", "spread.json")


@pytest.mark.slow
def test_the_agreement_is_on_what_the_library_learns(files: None, run: Run) -> None:
    found = run(*DESIGN, *PAIRS, *SPREAD, "-o", "designed.json", "--json")
    assert found.exit_code == 0, found.output
    record = json.loads(found.stdout)
    bits = pl.read_parquet("spread.parquet")["sample"].to_list()
    expected = learn(
        SIMPLEX,
        epsilon=2.0,
        rounds=[
            (dc.MollifierSampler(SIMPLEX, epsilon=2.0), counted("first")),
            (dc.OptimalSampler(SIMPLEX, epsilon=2.0), counted("second")),
        ],
        spread=(
            dc.OptimalSampler(dc.Simplex(2), epsilon=2.0),
            np.array([bits.count("spread out"), bits.count("of one kind")]),
        ),
    )
    assert expected.published
    assert record["published"] is True
    assert record["samples"] == 4_000
    assert record["better_under"] == expected.better
    assert [one["samples"] for one in record["learned_from"]] == [2_000, 1_000]
    agreement = Agreement.read("designed.json")
    ids = [Agreement.read(f"{name}.json").id for name in ("first", "second", "spread")]
    same = Agreement.of(expected.sampler, purpose=purpose_with_sources("", ids))
    assert agreement.id == record["agreement"] == same.id
    assert agreement.learned_from == tuple(ids)
    assert agreement.on_outcomes.everybody
    told = " ".join(run(*DESIGN, *PAIRS, "-o", "other.json").stdout.split())
    assert "Learned from 3,000 private samples under 2 agreements: a designed sampler" in told
    assert f"A client with a sample under {ids[0][:12]}, {ids[1][:12]} would spend a second budget" in told


def test_few_samples_leave_the_safe_sampler_and_say_so(files: None, run: Run) -> None:
    found = run(
        "design", "--epsilon", "0.1", "--from", "few.parquet", "--agreement", "few.json", "-o", "safe.json", "-q"
    )
    assert found.exit_code == 0, found.output
    told = " ".join(found.stdout.split())
    assert "no design" in told
    assert "stays" in told
    agreement = Agreement.read("safe.json")
    assert agreement.family.kind == "simplex"
    assert agreement.mechanism in ("optimal", "mollifier")


def test_samples_under_a_learned_design_are_learned_from_next(files: None, run: Run) -> None:
    assert run(*DESIGN, *PAIRS, "-o", "one.json").exit_code == 0
    first = Agreement.read("one.json")
    written("third", first.sampler(), np.full((500, 10), 0.1), "e", first.purpose)
    Path("third.json").unlink()
    again = run(*DESIGN, *PAIRS, "--from", "third.parquet", "--agreement", "one.json", "-o", "two.json", "--json")
    assert again.exit_code == 0, again.output
    assert [one["samples"] for one in json.loads(again.stdout)["learned_from"]] == [2_000, 1_000, 500]


def test_files_without_names_are_taken_on_trust_and_it_says_so(files: None, run: Run) -> None:
    pl.read_parquet("second.parquet").drop("client").write_parquet("second.parquet")
    found = run(*DESIGN, *PAIRS, "-o", "designed.json", "--json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["notes"] == [
        "not all files name their clients; it is not checked that each sent one sample"
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((*PAIRS, "--from", "first.parquet", "--agreement", "first.json"), "occur in another file too"),
        (("--from", "first.parquet"), "give --agreement FILE"),
        (("--from", "first.parquet", "--agreement", "second.json"), "was made under agreement"),
        ((*PAIRS[:2], "--agreement", "first.json", "--agreement", "second.json"), "--from was given 1 times"),
        ((*PAIRS, "--from", "spread.parquet", "--agreement", "spread.json"), "on other outcomes"),
        ((*PAIRS, "--spread", "few.parquet", "--spread-agreement", "few.json"), "spread is of"),
        ((*PAIRS, "--spread-agreement", "spread.json"), "give both"),
        ((*PAIRS, "--client", "who"), "--client is for public examples"),
        ((*PAIRS, "--nulls", "drop"), "--nulls is for public examples"),
        ((*PAIRS, "--confidence", "1"), "confidence"),
        ((*PAIRS, "--keep", "2"), "keep"),
        (("first.parquet", *PAIRS), "EXAMPLES is for public examples"),
        (("--agreement", "first.json"), "give that too"),
        (("first.parquet", "--confidence", "0.5"), "--confidence belong to --from"),
        ((), "give public records as EXAMPLES"),
        (("--from", "nothing.parquet", "--agreement", "first.json"), "nothing.parquet"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_named(
    files: None, refusal: Callable[..., str], arguments: tuple[str, ...], said: str
) -> None:
    assert said in refusal(*DESIGN, *arguments, "-o", "designed.json")
    assert not Path("designed.json").exists()


def test_an_output_never_replaces_what_is_read(files: None, refusal: Callable[..., str]) -> None:
    before = Path("first.json").read_bytes()
    refusal(*DESIGN, *PAIRS, "-o", "first.json")
    assert Path("first.json").read_bytes() == before


def test_serving_those_again_whom_it_was_learned_from_is_noticed(files: None, run: Run) -> None:
    """The agreement names their agreements; a sample under it says so, and a collector that keeps theirs wants to know that it follows."""
    first = Agreement.read("first.json")
    assert run(*DESIGN, *PAIRS, "--purpose", "routes", "-o", "learned.json").exit_code == 0
    learned = Agreement.read("learned.json")
    assert learned.learned_from == (first.id, Agreement.read("second.json").id)
    assert learned.purpose.startswith("routes (learned from samples under ")
    assert Agreement.of(learned.sampler(), purpose="routes").learned_from == ()
    pl.DataFrame({"who": ["a0", "a1"], "where": LABELS[:2]}).write_parquet("clients.parquet")
    sampled = run(
        "sample", "clients.parquet", "--client", "who", "--value", "where", "--agreement", "learned.json", "-o",
        "again.parquet",
    )  # fmt: skip
    assert sampled.exit_code == 0, sampled.output
    assert f"learned from samples under {first.id[:12]}" in " ".join(sampled.output.split())
    store = open_store("samples.db")
    _add_agreements_to_store(store, "samples.db", [first], None)
    with pytest.raises(
        dc.DiscreetError, match=f"learned from samples under {first.id[:12]}.*--follows {first.id[:12]}"
    ):
        _add_agreements_to_store(store, "samples.db", [learned], None)
    _add_agreements_to_store(store, "samples.db", [learned], first.id[:12])
    _add_agreements_to_store(store, "samples.db", [learned], first.id[:12])  # a restart names it again
    store.close()
