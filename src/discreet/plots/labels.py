"""How mechanisms and divergences are called in front of people; the library's own names stay what they are."""

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
