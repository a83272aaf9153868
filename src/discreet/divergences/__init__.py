"""f-divergences D_f(P||Q) = sum_x q_x f(p_x / q_x) for convex f with f(1) = 0 [paper, Section 2.1 and Appendix B]."""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.divergences._curves import (
        CHECKED_IN_RATIONALS as CHECKED_IN_RATIONALS,
        ConvexCurve as ConvexCurve,
        HockeyStickCurve as HockeyStickCurve,
        curve_of_divergence as curve_of_divergence,
        hockey_stick_gamma_or_none as hockey_stick_gamma_or_none,
        is_line_below_generator as is_line_below_generator,
        tangent_line as tangent_line,
    )
    from discreet.divergences._divergences import (
        BUILT_IN as BUILT_IN,
        FDivergence,
        RenyiDivergence,
        alpha,
        chi2,
        divergence,
        has_form_of_divergence_name as has_form_of_divergence_name,
        hellinger,
        hockey_stick,
        jensen_shannon,
        kl,
        le_cam,
        renyi,
        reverse_kl,
        tv,
    )

__all__ = [
    "FDivergence",
    "RenyiDivergence",
    "alpha",
    "chi2",
    "divergence",
    "hellinger",
    "hockey_stick",
    "jensen_shannon",
    "kl",
    "le_cam",
    "renyi",
    "reverse_kl",
    "tv",
]
