"""The total privacy loss of many releases: profile of a box, exact composition, odometer, Renyi curve, splitting and shuffling."""

from discreet._base import getattr_for_old_names, imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.accounting._composition import (
        MOST_SAMPLES as MOST_SAMPLES,
        GaussianLoss,
        Odometer,
        PrivacyLoss,
        compose,
        epsilon_from_renyi,
        renyi,
    )
    from discreet.accounting._profile import BoxProfile, profile_of, shuffled_delta, shuffled_epsilon
    from discreet.accounting._splitting import MOST_EXACT as MOST_EXACT, epsilon_per_sample, equal_share, keeps_together


__all__ = [
    "BoxProfile",
    "GaussianLoss",
    "Odometer",
    "PrivacyLoss",
    "compose",
    "epsilon_from_renyi",
    "epsilon_per_sample",
    "equal_share",
    "keeps_together",
    "profile_of",
    "renyi",
    "shuffled_delta",
    "shuffled_epsilon",
]

__getattr__ = getattr_for_old_names(__name__, {"shared": "equal_share"})
