"""The boosted baseline of Figure 4: all clients at once against the loop a reader of the paper would write, client by client; and
the compiled training against torch's on one core, for which it is kept.

python -m benchmarks.boosted                              the rival and ours on this CPU, a few clients each
python -m benchmarks.boosted --device cuda --out DIR      all five budgets, 100 clients each, on a GPU; records under DIR
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rivals import eager_boosting
from discreet._base.kernels import processor_count
from discreet.research import _boosted as networks, _boosted_compiled as compiled, _boosted_tensors as tensors
from discreet.research._boosted import PRESETS, BoostedSampler, Training
from discreet.research.experiments import run_experiment as run_experiment
from discreet.research.experiments._paper_figures import MixtureExperiment, draw_random_clients, mixture_family

EPSILON, SEED = 1.0, 3
UNITS = 500  # clients times budgets in Figure 4


def on_this_cpu(share: float = 0.1) -> None:
    """Both on a share of the epochs, a share that both have; the rival on one client, ours on as many as there are cores, twice."""
    epochs = max(1, round(750 * share))
    training = Training(epochs=epochs, burn_in=max(1, round(1_000 * share)))
    sampler = BoostedSampler(mixture_family(), epsilon=EPSILON, training=training)
    clients = draw_random_clients(2 * processor_count(), seed=SEED, most=10, mean_extra=2.0)
    warm = replace(training, epochs=1, samples=200, batch=100, burn_in=1)
    BoostedSampler(mixture_family(), epsilon=EPSILON, training=warm).output(clients[0])
    start = time.perf_counter()
    theirs = eager_boosting(clients[0], EPSILON, training)
    slow = time.perf_counter() - start
    start = time.perf_counter()
    law = sampler.output(clients)
    fast = (time.perf_counter() - start) / len(clients)
    print(
        f"Boosted baseline, {epochs} of 750 epochs and {training.burn_in} of 1,000 burn-in steps, {processor_count()} cores"
    )
    for name, seconds in (("eager torch, one client at a time", slow), ("all clients at once", fast)):
        whole = seconds / share * UNITS / 3600
        print(f"  {name:36}{seconds:8.2f} s a client   {whole:6.2f} h for Figure 4 (extrapolated)")
    print(f"  {'times faster':36}{slow / fast:8.1f}")
    print(
        f"  KL of the first client: theirs {theirs:.4f}, ours {np.asarray(law.divergence('kl'))[0]:.4f} (other random numbers)"
    )


def in_both_ways(epochs: int = 10, steps: int = 50) -> None:
    """A step of training and a step of the chains, compiled and in torch, in milliseconds of one core."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    training, rng = Training(epochs=epochs, burn_in=steps - 1), np.random.default_rng(SEED)
    fresh = networks.draw_initial_parameters(1, training.width, rng)
    p, q = (rng.standard_normal((1, training.samples)).astype(np.float32) for _ in range(2))
    two, weights, preset = np.stack([fresh, fresh]), np.array([0.2, 0.04]), PRESETS["published"]
    box = np.array([-4.0]), np.array([4.0])

    def trained_compiled() -> None:
        compiled.train_client_network_in_place(
            fresh.copy(), p, q, training.width, epochs, training.batch, training.rate, training.momentum
        )

    def walked_compiled() -> None:
        compiled.draw_points_by_metropolis(
            two, weights, training.width, False, preset.high, *box, training.samples, steps, rng
        )

    ways: dict[str, tuple[int, Callable[[], Any], Callable[[], Any]]] = {
        "training, 2 x 5,000 points": (
            epochs * training.samples // training.batch,
            trained_compiled,
            lambda: tensors.train_networks(fresh[None], p[None], q[None], training, "cpu"),
        ),
        "10,000 chains, two networks": (
            steps,
            walked_compiled,
            lambda: tensors.draw_points_by_metropolis(two[None], weights[None], *box, training, preset, SEED, "cpu"),
        ),
    }
    print("One step on one core, ms                 compiled     torch     ratio")
    for name, (count, ours, theirs) in ways.items():
        mine, other = (1e3 * _cpu_seconds(way) / count for way in (ours, theirs))
        print(f"  {name:36}{mine:10.2f}{other:10.2f}{other / mine:10.1f}")
    torch.set_num_threads(threads)


def _cpu_seconds(way: Callable[[], Any]) -> float:
    """The least of three, after one to warm up; processor time, which neighbours on the machine do not lengthen."""
    way()
    found = []
    for _ in range(3):
        start = time.process_time()
        way()
        found.append(time.process_time() - start)
    return min(found)


def on_a_gpu(device: str, out: Path, clients: int) -> None:
    """Figure 4 in full: every client of every budget in one batched training for each preset."""
    experiment = replace(MixtureExperiment(), device=device, clients=clients)
    for presets in (("published",), ("published", "corrected")):
        start = time.perf_counter()
        chosen = replace(experiment, presets=presets)
        records = run_experiment(chosen, out / "+".join(presets), restart=True)
        seconds = time.perf_counter() - start
        trained = sum(row.laws["boosted"].seconds for row in records.rows)
        print(f"{', '.join(presets)}: {len(records.rows)} clients in {seconds:.1f} s altogether,", end=" ")
        print(f"the published preset trained in {trained:.1f} s", flush=True)


def run() -> None:
    """What `python -m benchmarks boosted` prints."""
    on_this_cpu()
    in_both_ways()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("out/benchmark"))
    parser.add_argument("--clients", type=int, default=100)
    given = parser.parse_args()
    if given.device == "cpu":
        run()
    else:
        on_a_gpu(given.device, given.out, given.clients)
