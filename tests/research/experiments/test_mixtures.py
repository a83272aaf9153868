"""Figure 4: what its clients spend, and killing the run in the middle of it. `tests/research/test_published_numbers.py` has its numbers."""

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

from discreet.research._boosted import Training
from discreet.research.experiments import read_records, records_path, run_experiment
from discreet.research.experiments._paper_figures import MixtureClient, MixtureExperiment
from tests.soaking import wide

COMPARED = {0.5: 2, 1.0: 3, 2.0: 4}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Sequence[MixtureClient]:
    planned = MixtureExperiment(clients=100, epsilons=tuple(COMPARED), seeds=tuple(COMPARED.values()), presets=())
    return run_experiment(planned, tmp_path_factory.mktemp("fig4")).rows


@pytest.mark.soak
def test_nobody_spends_more_than_the_budget(full: Sequence[MixtureClient]) -> None:
    for epsilon in COMPARED:
        for mechanism in ("proposed", "mollifier"):
            logs = np.array([row.laws[mechanism].log_density for row in full if row.epsilon == epsilon])
            spread = (logs.max(axis=0) - logs.min(axis=0)).max()
            assert 0.9 * epsilon < spread <= epsilon + 1e-6


def small(clients: int = wide(6, 2)) -> MixtureExperiment:
    training = Training(epochs=40, samples=400, batch=200, burn_in=20)
    return replace(MixtureExperiment(), clients=clients, epsilons=(1.0, 2.0), seeds=(3, 4), training=training)


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
        "from discreet.research.experiments import run_experiment; "
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
    assert 2 <= kept < len(small().work_unit_names)
    done: list[int] = []
    run_experiment(small(), tmp_path, lambda finished, _: done.append(finished))
    assert done[0] == kept
    assert path.read_bytes().startswith(finished)
    rows = read_records(path, MixtureClient).rows
    assert sorted(row.unit for row in rows) == sorted(small().work_unit_names)
    left_alone = run_experiment(small(), tmp_path / "alone").rows
    assert without_times(rows) == without_times(left_alone)
