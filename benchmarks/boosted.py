"""The boosted baseline of Figure 4: all clients at once against the loop a reader of the paper would write, client by client.

python -m benchmarks.boosted                              the rival and ours on this CPU, a few clients each
python -m benchmarks.boosted --device cuda --out DIR      all five budgets, 100 clients each, on a GPU; records under DIR
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.rivals import eager_boosting
from discreet.experiments.mixtures import RandomMixtures, family, random_clients
from discreet.experiments.running import run as run_experiment
from discreet.mechanisms.boosted import BoostedSampler, Training
from discreet.projection.threads import available

EPSILON, SEED = 1.0, 3
UNITS = 500  # clients times budgets in Figure 4


def on_this_cpu(share: float = 0.1) -> None:
    """Both on a share of the epochs, a share that both have; the rival on one client, ours on as many as there are cores, twice."""
    epochs = max(1, round(750 * share))
    training = Training(epochs=epochs, burn_in=max(1, round(1_000 * share)))
    sampler = BoostedSampler(family(), epsilon=EPSILON, training=training)
    clients = random_clients(2 * available(), seed=SEED, most=10, mean_extra=2.0)
    warm = replace(training, epochs=1, samples=200, batch=100, burn_in=1)
    BoostedSampler(family(), epsilon=EPSILON, training=warm).output(clients[0])
    start = time.perf_counter()
    theirs = eager_boosting(clients[0], EPSILON, training)
    slow = time.perf_counter() - start
    start = time.perf_counter()
    law = sampler.output(clients)
    fast = (time.perf_counter() - start) / len(clients)
    print(
        f"Boosted baseline, {epochs} of 750 epochs and {training.burn_in} of 1,000 burn-in steps, {available()} cores"
    )
    for name, seconds in (("eager torch, one client at a time", slow), ("all clients at once", fast)):
        whole = seconds / share * UNITS / 3600
        print(f"  {name:36}{seconds:8.2f} s a client   {whole:6.2f} h for Figure 4 (extrapolated)")
    print(f"  {'times faster':36}{slow / fast:8.1f}")
    print(
        f"  KL of the first client: theirs {theirs:.4f}, ours {np.asarray(law.divergence('kl'))[0]:.4f} (other random numbers)"
    )


def on_a_gpu(device: str, out: Path, clients: int) -> None:
    """Figure 4 in full: every client of every budget in one batched training for each preset."""
    experiment = replace(RandomMixtures(), device=device, clients=clients)
    for presets in (("published",), ("published", "corrected")):
        start = time.perf_counter()
        chosen = replace(experiment, presets=presets)
        records = run_experiment(chosen, out / "+".join(presets), restart=True)
        seconds = time.perf_counter() - start
        trained = sum(row["boosted"]["seconds"] for row in records.rows)
        print(f"{', '.join(presets)}: {len(records.rows)} clients in {seconds:.1f} s altogether,", end=" ")
        print(f"the published preset trained in {trained:.1f} s", flush=True)


def run() -> None:
    """What `python -m benchmarks boosted` prints."""
    on_this_cpu()


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
