"""Families of client distributions: a reference measure mu and a band c1 <= dP/dmu <= c2 [paper, eq. (possibleDensityAssumption)]."""

from discreet._base.doors import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.families._bands_and_laws import (
        LARGEST_ENUMERATED as LARGEST_ENUMERATED,
        SUM_TOLERANCE as SUM_TOLERANCE,
        Bounds as Bounds,
        Outsiders as Outsiders,
        WorstMembers as WorstMembers,
        as_floats as as_floats,
        as_laws as as_laws,
        check_everybody as check_everybody,
        check_family as check_family,
        check_laws as check_laws,
        extreme_laws as extreme_laws,
        is_law as is_law,
        law_of_logits as law_of_logits,
        outsiders_on_outcomes as outsiders_on_outcomes,
        refuse_bad_entries as refuse_bad_entries,
        refuse_bad_law as refuse_bad_law,
        renormalise_laws as renormalise_laws,
        report_outsiders as report_outsiders,
        serves_everybody as serves_everybody,
        splits_evenly as splits_evenly,
        sum_rounding as sum_rounding,
        uniform_vertex as uniform_vertex,
        vertices as vertices,
    )
    from discreet.families._continuous import (
        ANY as ANY,
        BAND_SLACK as BAND_SLACK,
        LARGEST_CHARTED as LARGEST_CHARTED,
        ContinuousFamily,
        NodeSummary as NodeSummary,
        as_clients as as_clients,
        check_masses as check_masses,
        find_outsiders as find_outsiders,
        is_list_of_clients as is_list_of_clients,
        is_member as is_member,
        known_interval_masses as known_interval_masses,
        largest_log_ratios as largest_log_ratios,
        log_ratios as log_ratios,
        missed_clients as missed_clients,
        panel_masses as panel_masses,
        sampling_deviation as sampling_deviation,
        unseen_error as unseen_error,
        warn_of_coarse_masses as warn_of_coarse_masses,
        warn_of_unresolved_masses as warn_of_unresolved_masses,
    )
    from discreet.families._densities import (
        BoundedDensity,
        Drawable as Drawable,
        HasLogPdf as HasLogPdf,
        LogDensity as LogDensity,
        Tabulated,
        as_density as as_density,
        as_points as as_points,
        shape_of_points as shape_of_points,
    )
    from discreet.families._density_band import DensityBand, Near
    from discreet.families._finite import Band, FiniteFamily, Preserving, Simplex
    from discreet.families._fits import (
        HistogramFit,
        HistogramLaw as HistogramLaw,
        KernelFit,
        LineCells as LineCells,
        MixtureFit,
    )
    from discreet.families._integration import (
        Cartesian as Cartesian,
        CellPartition as CellPartition,
        Features as Features,
        Identity as Identity,
        IntervalMasses as IntervalMasses,
        Nodes as Nodes,
        features_of as features_of,
    )
    from discreet.families._kernel_mixtures import LAPLACE as LAPLACE, Mixture
    from discreet.families._mixtures import GaussianMixtures, LaplaceMixtures


__all__ = [
    "Band",
    "BoundedDensity",
    "ContinuousFamily",
    "DensityBand",
    "FiniteFamily",
    "GaussianMixtures",
    "HistogramFit",
    "KernelFit",
    "LaplaceMixtures",
    "Mixture",
    "MixtureFit",
    "Near",
    "Preserving",
    "Simplex",
    "Tabulated",
]
