"""How divergences and outcomes are called in front of people; the library's own names stay what they are."""

from discreet.privacy import Privacy, Pure

_DIVERGENCES = {
    "kl": "KL",
    "reverse_kl": "reverse KL",
    "tv": "total variation",
    "hellinger": "squared Hellinger",
    "chi2": "chi-squared",
    "jensen_shannon": "Jensen-Shannon",
    "le_cam": "Le Cam",
}


def divergence_label(name: str) -> str:
    """A divergence's name as one would say it; one's own and the parametric ones keep theirs."""
    return _DIVERGENCES.get(name, name)


def promise_label(privacy: Privacy, epsilon: float) -> str:
    """What samples were released under: an epsilon, or another notion by its name."""
    return f"at ε = {epsilon:g}" if isinstance(privacy, Pure) else f"under {privacy}"


def shorten_name(name: str, most: int = 32) -> str:
    """A name that leaves room for the picture."""
    return name if len(name) <= most else name[: most - 1] + "…"
