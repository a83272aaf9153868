"""`discreet account`: what several samples of one client add up to, and what shuffling buys."""

from typing import Annotated, Any

import typer

from discreet.accounting import BoxProfile, compose, epsilon_from_renyi, epsilon_per_sample, shuffled_epsilon
from discreet.cli._printing import number, say, table, write_json
from discreet.errors import DiscreetError, check_count

USUAL_SAMPLES = (1, 4, 16, 64)


def account(
    epsilon: Annotated[
        float | None, typer.Option(metavar="E", help="Budget of each sample.", show_default=False)
    ] = None,
    outcomes: Annotated[
        int | None, typer.Option(metavar="K", help="Number of outcomes, every distribution on them.")
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(metavar="A", help="Instead: mass on which an extreme client sits; 1/K for K outcomes."),
    ] = None,
    samples: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Samples of one client; may be repeated. [default: 1 4 16 64]")
    ] = None,
    delta: Annotated[float, typer.Option(metavar="D", help="Chance with which the total may be exceeded.")] = 1e-6,
    total: Annotated[
        float | None, typer.Option(metavar="E", help="Instead of --epsilon: a budget to be split over the samples.")
    ] = None,
    clients: Annotated[
        int | None, typer.Option(metavar="N", help="Also: so many clients send one sample each, shuffled.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """What several samples of one client add up to, exactly, beside simpler sums; --total asks the other way round."""
    if (epsilon is None) == (total is None):
        raise DiscreetError("account needs either --epsilon (of each sample) or --total (to be split), and not both")
    if (outcomes is None) == (alpha is None):
        raise DiscreetError("account needs either --outcomes K or --alpha A, and not both")
    if outcomes is not None:
        alpha = 1.0 / check_count("outcomes", outcomes)
    assert alpha is not None
    counts = samples or list(USUAL_SAMPLES)
    if total is not None:
        if clients is not None:
            raise DiscreetError("--clients counts one sample of each client; give it with --epsilon, not with --total")
        _split(alpha, counts, total, delta, json)
        return
    assert epsilon is not None
    profile = BoxProfile(epsilon=epsilon, alpha=alpha, attained=outcomes is not None)
    rows = [_row(profile, count, delta) for count in counts]
    shuffled = None if clients is None else shuffled_epsilon(profile, clients=clients, delta=delta)
    if json:
        record: dict[str, Any] = {"epsilon": epsilon, "alpha": alpha, "delta": delta, "samples": rows}
        write_json(record if clients is None else record | {"shuffled": {"clients": clients, "epsilon": shuffled}})
        return
    made = table("samples", "basic", "Renyi", "exact", texts=0)
    for row in rows:
        made.add_row(f"{row['samples']:,}", number(row["basic"]), number(row["renyi"]), number(row["composed"]))
    blocks: list[Any] = [
        f"Samples at epsilon = {epsilon:g} each, alpha = {alpha:.4g}: together (epsilon, {delta:g})-LDP with epsilon",
        made,
        "exact: two clients reach it"
        if profile.attained
        else "exact: for a reference without atoms; else an upper bound",
    ]
    if shuffled is not None:
        blocks.append(
            f"One sample of each of {clients:,} clients, shuffled: (epsilon, {delta:g})-DP with epsilon at most {number(shuffled)}"
        )
    say(*blocks)


def _row(profile: BoxProfile, samples: int, delta: float) -> dict[str, Any]:
    loss = compose([(profile, samples)])
    found = loss.epsilon(delta)
    by_renyi = epsilon_from_renyi(profile, samples=samples, delta=delta) if delta else loss.largest
    return {
        "samples": samples,
        "basic": loss.largest,
        "renyi": by_renyi,
        "composed": found,
        "attained": loss.attained,
    }


def _split(alpha: float, counts: list[int], total: float, delta: float, json: bool) -> None:
    shares = [(n, epsilon_per_sample(alpha=alpha, samples=n, epsilon=total, delta=delta)) for n in counts]
    if json:
        rows = [{"samples": n, "basic": total / n, "epsilon": share} for n, share in shares]
        write_json({"total": total, "alpha": alpha, "delta": delta, "samples": rows})
        return
    made = table("samples", "basic", "best known", texts=0)
    for n, share in shares:
        made.add_row(f"{n:,}", number(total / n), number(share))
    say(f"Epsilon of each sample, so that all are ({total:g}, {delta:g})-LDP together, alpha = {alpha:.4g}:", made)
