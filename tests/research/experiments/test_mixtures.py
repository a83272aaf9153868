"""Figure 4, proposed mechanism, against what was published; and killing the run in the middle of it.

`published_mixtures.csv` holds the numbers behind the paper's Figure 4 as its authors published them: a row for each of 100 clients at
each of three budgets. Hellinger there is half of the text's.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.research import _published as published
from discreet.research._boosted import Training
from discreet.research.experiments._paper_figures import MixtureClient, RandomMixtures
from discreet.research.experiments._records import read_records, records_path, run_experiment
from tests.soaking import wide

PUBLISHED = np.loadtxt(Path(__file__).with_name("published_mixtures.csv"), delimiter=",", skiprows=1)
COMPARED = {0.5: 2, 1.0: 3, 2.0: 4}
DIVERGENCES = ("kl", "tv", "hellinger")


def published_at(epsilon: float) -> NDArray[np.float64]:
    """Clients by (divergence, mechanism)."""
    return np.asarray(PUBLISHED[PUBLISHED[:, 0] == epsilon, 1:])


def proposed(clients: int) -> RandomMixtures:
    return RandomMixtures(clients=clients, epsilons=tuple(COMPARED), seeds=tuple(COMPARED.values()), presets=())


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Sequence[MixtureClient]:
    return run_experiment(proposed(100), tmp_path_factory.mktemp("fig4")).rows


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Sequence[MixtureClient]:
    return run_experiment(proposed(1), tmp_path_factory.mktemp("fig4")).rows


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", list(COMPARED))
def test_the_first_client_is_the_published_one(first: Sequence[MixtureClient], epsilon: float) -> None:
    row = next(row for row in first if row.unit == f"{epsilon:g}/0")
    cited = published.MIXTURES[epsilon, "proposed"].first_client
    for f in DIVERGENCES:
        assert row.laws["proposed"].costs[f] == pytest.approx(cited[f], abs=1e-5)


@pytest.mark.soak
@pytest.mark.parametrize("epsilon", list(COMPARED))
@pytest.mark.parametrize("f", DIVERGENCES)
def test_costs_are_distributed_as_published(full: Sequence[MixtureClient], epsilon: float, f: str) -> None:
    """Two-sample Kolmogorov-Smirnov, and a maximum that resampling of the published clients explains."""
    ours = np.array([row.laws["proposed"].costs[f] for row in full if row.epsilon == epsilon])
    column = published_at(epsilon)[:, 2 * DIVERGENCES.index(f)]
    theirs = published.text_hellinger(1.0) * column if f == "hellinger" else column
    assert len(ours) == len(theirs) == 100
    assert stats.ks_2samp(ours, theirs).pvalue > 0.01
    pooled = np.concatenate([ours, theirs])
    rng = np.random.default_rng(0)
    maxima = rng.choice(pooled, (2_000, 100)).max(axis=1)
    low, high = np.quantile(maxima, [0.005, 0.995])
    assert low <= ours.max() <= high
    assert low <= theirs.max() <= high


@pytest.mark.parametrize("epsilon", list(COMPARED))
def test_the_cited_facts_are_those_of_the_arrays(epsilon: float) -> None:
    array = published_at(epsilon)
    for place, mechanism in enumerate(("proposed", "boosted")):
        cited = published.MIXTURES[epsilon, mechanism]
        for column, f in enumerate(DIVERGENCES):
            values = array[:, 2 * column + place] * (2.0 if f == "hellinger" else 1.0)
            assert cited.maximum[f] == pytest.approx(values.max(), abs=2e-6)
            assert cited.first_client[f] == pytest.approx(values[0], abs=1e-8, rel=1e-6)
            if f in cited.mean:
                assert cited.mean[f] == pytest.approx(values.mean(), abs=1e-6)
    assert published.BETTER_IN_KL[epsilon] == (array[:, 0] < array[:, 1]).sum()


@pytest.mark.soak
def test_nobody_spends_more_than_the_budget(full: Sequence[MixtureClient]) -> None:
    for epsilon in COMPARED:
        for mechanism in ("proposed", "mollifier"):
            logs = np.array([row.laws[mechanism].log_density for row in full if row.epsilon == epsilon])
            spread = (logs.max(axis=0) - logs.min(axis=0)).max()
            assert 0.9 * epsilon < spread <= epsilon + 1e-6


def small(clients: int = wide(6, 2)) -> RandomMixtures:
    training = Training(epochs=40, samples=400, batch=200, burn_in=20)
    return replace(RandomMixtures(), clients=clients, epsilons=(1.0, 2.0), seeds=(3, 4), training=training)


def without_times(rows: Sequence[MixtureClient]) -> list[dict[str, Any]]:
    text = json.dumps([asdict(row) for row in sorted(rows, key=lambda row: row.unit)])
    cleaned: list[dict[str, Any]] = json.loads(
        text, object_hook=lambda found: {k: v for k, v in found.items() if k != "seconds"}
    )
    return cleaned


@pytest.mark.slow
def test_killing_it_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    """kill -9 once two clients are done; the same command again; the records are those of a run that was left alone."""
    program = (
        "import os, signal, sys; from pathlib import Path; from tests.research.experiments.test_mixtures import small; "
        "from discreet.research.experiments._records import run_experiment; "
        "end = lambda finished, _: finished < 2 or os.kill(os.getpid(), signal.SIGKILL); "
        "run_experiment(small(), Path(sys.argv[1]), end)"
    )
    root = Path(__file__).parents[3]
    path = records_path(small(), tmp_path)
    done_once = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"},
        check=False,
    )
    assert done_once.returncode == -signal.SIGKILL
    finished = path.read_bytes()
    kept = finished.count(b"\n") - 1
    assert 2 <= kept < len(small().units)
    done: list[int] = []
    run_experiment(small(), tmp_path, lambda finished, _: done.append(finished))
    assert done[0] == kept
    assert path.read_bytes().startswith(finished)
    rows = read_records(path, MixtureClient).rows
    assert sorted(row.unit for row in rows) == sorted(small().units)
    left_alone = run_experiment(small(), tmp_path / "alone").rows
    assert without_times(rows) == without_times(left_alone)
