"""Notions of privacy as values: each knows its trade-off function, its hockey-stick profile and its box for a band."""

from discreet._base import getattr_for_old_names, imports_on_first_use

with imports_on_first_use(globals()):
    from discreet._base.numerics import (
        LARGEST_EXPONENT,
        exp_lower,
        exp_nearest,
        exp_upper,
        expm1_nearest,
        log_bracket,
        stated_decimal,
    )
    from discreet.privacy._gaussian_and_functional import (
        LEAST_PROBABILITY as LEAST_PROBABILITY,
        Functional,
        Gaussian,
        normal_cdf_bounds as normal_cdf_bounds,
        normal_quantile_below as normal_quantile_below,
        privacy_document as privacy_document,
        read_privacy as read_privacy,
    )
    from discreet.privacy._notion import (
        DELTA as DELTA,
        DELTA_FIX as DELTA_FIX,
        EXPONENT as EXPONENT,
        Approximate,
        Privacy,
        Pure,
        check_epsilon as check_epsilon,
        chosen_privacy,
        extreme_masses,
        largest_ratio_for_epsilon as largest_ratio_for_epsilon,
        read_budget_in_range as read_budget_in_range,
        require_masses_of_box as require_masses_of_box,
    )


__all__ = [
    "LARGEST_EXPONENT",
    "Approximate",
    "Functional",
    "Gaussian",
    "Privacy",
    "Pure",
    "chosen_privacy",
    "exp_lower",
    "exp_nearest",
    "exp_upper",
    "expm1_nearest",
    "extreme_masses",
    "log_bracket",
    "stated_decimal",
]

__getattr__ = getattr_for_old_names(__name__, {"promised": "chosen_privacy"})
