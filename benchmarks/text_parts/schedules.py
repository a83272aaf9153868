"""Unequal budgets for the tokens of a text, at equal total: by their place, or by the entropy of the public law, in three groups.

Both are public. What is best is looked for on public texts: epsilons of the groups with the same sum over a text (the pure total), or with
the same exact composition at delta = 1e-6. Groups by entropy differ in size from text to text, so their total is the same in the mean.
"""

import math
from collections.abc import Callable

import torch

from discreet.accounting import compose
from discreet.torch import fitted_upper, output
from discreet.torch.transformers._terms import box_profile_of_one_token

EPSILONS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
SCHEDULED = (1.0, 2.0)

Batches = list[tuple[torch.Tensor, torch.Tensor]]


def unequal_budgets(public: Batches, private: Batches, steps: int, examples: int) -> None:
    """Print, for groups of tokens by place and by entropy, the budgets that are best on public texts and what they give on private ones.

    Args:
        public: logits of client and public at public steps, in batches of whole texts.
        private: the same at private ones.
        steps: tokens of a text.
        examples: public steps on which boxes are chosen.
    """
    device = public[0][0].device
    ends = torch.tensor(
        [max(1, steps // 16), steps // 4], device=device
    )  # the beginning of a text, its first quarter, the rest
    logits, beside = public[0][0][:examples], public[0][1][:examples]
    uppers = {each: fitted_upper(epsilon=each, logits=logits, reference=beside) for each in EPSILONS}
    entropies = torch.cat([entropy(m) for _, m in public])
    cuts = torch.quantile(entropies[:: max(1, len(entropies) // 10_000)], torch.tensor([1 / 3, 2 / 3], device=device))

    def by_place(m: torch.Tensor) -> torch.Tensor:
        return torch.bucketize(torch.arange(len(m), device=device) % steps, ends, right=True)

    def by_entropy(m: torch.Tensor) -> torch.Tensor:
        return torch.bucketize(entropy(m), cuts)

    for name, group in (("place in the text", by_place), ("entropy of the public law", by_entropy)):
        shares, chosen_on = costs(public, group, uppers)
        seen_shares, seen_on = costs(private, group, uppers)
        print(f"budgets by {name}: groups with {', '.join(f'{share:.0%}' for share in seen_shares)} of the tokens")
        for base in SCHEDULED:
            same = sum(share * at(cost, base) for share, cost in zip(seen_shares, seen_on, strict=True))
            for kind, power in (("pure total", 1.0), ("total at delta", 2.0)):
                best = best_schedule(shares, chosen_on, base, power)
                if power == 2.0:
                    best = as_costly(
                        best, [max(1, round(share * steps)) for share in shares], base, uppers, logits.shape[1]
                    )
                found = sum(
                    share * at(cost, each) for share, cost, each in zip(seen_shares, seen_on, best, strict=True)
                )
                told = ", ".join(f"{each:.3g}" for each in best)
                print(
                    f"  epsilon {base:g}, equal {kind}: {told}; mean KL {found:.4f} where {base:g} for all has {same:.4f}",
                    flush=True,
                )


def entropy(m: torch.Tensor) -> torch.Tensor:
    """Of each row's law."""
    logs = torch.log_softmax(m, -1)
    return -(logs.exp() * logs).sum(-1)


def costs(
    rows: Batches, group: Callable[[torch.Tensor], torch.Tensor], uppers: dict[float, float]
) -> tuple[list[float], list[dict[float, float]]]:
    """(the share of the tokens that each group has, the mean KL of each group at each epsilon)."""
    count = torch.zeros(3, dtype=torch.float64, device=rows[0][0].device)
    sums = {each: torch.zeros_like(count) for each in uppers}
    for p, m in rows:
        which = group(m)
        count += torch.bincount(which, minlength=3)
        log_own = torch.log_softmax(p.double(), -1).clamp_min(-700.0)
        for each, upper in uppers.items():
            q = output(logits=p, reference=m, epsilon=each, upper=upper).double()
            lost = (log_own.exp() * (log_own - q.clamp_min(1e-300).log())).sum(-1)
            sums[each] += torch.bincount(which, weights=lost, minlength=3)
    shares = (count / count.sum()).tolist()
    return shares, [{each: float(sums[each][place] / count[place]) for each in uppers} for place in range(3)]


def at(cost: dict[float, float], epsilon: float) -> float:
    """The KL of a group at any epsilon, from those at some: its logarithm in between is taken for a straight line."""
    known = sorted(cost)
    above = min(
        next((place for place, each in enumerate(known) if each >= epsilon), len(known) - 1) or 1, len(known) - 1
    )
    low, high = known[above - 1], known[above]
    part = (epsilon - low) / (high - low)
    return math.exp((1 - part) * math.log(max(cost[low], 1e-12)) + part * math.log(max(cost[high], 1e-12)))


def best_schedule(shares: list[float], cost: list[dict[float, float]], base: float, power: float) -> list[float]:
    """Epsilons of three groups with the same mean of epsilon^power as `base` for all, and the least mean KL."""
    found = [base] * 3
    least = sum(share * at(each, base) for share, each in zip(shares, cost, strict=True))
    for first in EPSILONS:
        for second in EPSILONS:
            left = base**power - shares[0] * first**power - shares[1] * second**power
            if left <= 0.0:
                continue
            tried = [first, second, (left / shares[2]) ** (1.0 / power)]
            if not min(EPSILONS) <= tried[2] <= max(EPSILONS):
                continue
            value = sum(share * at(each, epsilon) for share, each, epsilon in zip(shares, cost, tried, strict=True))
            if value < least:
                found, least = tried, value
    return found


def as_costly(
    schedule: list[float], counts: list[int], base: float, uppers: dict[float, float], words: int
) -> list[float]:
    """The schedule times the factor that makes it cost what `base` for all costs, by exact composition at delta = 1e-6."""

    def total(epsilons: list[float]) -> float:
        near = [min(uppers, key=lambda known: abs(known - each)) for each in epsilons]
        parts = [
            (box_profile_of_one_token(each, uppers[known], words), count)
            for each, known, count in zip(epsilons, near, counts, strict=True)
        ]
        return compose(parts).epsilon(1e-6)

    def times(factor: float) -> list[float]:
        return [min(factor * each, max(uppers)) for each in schedule]

    wanted, low, high = total([base] * 3), 0.25, 1.5
    for _ in range(12):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if total(times(middle)) <= wanted else (low, middle)
    return times(low)
