"""Families of client distributions: a reference measure mu and a band c1 <= dP/dmu <= c2 [paper, eq. (possibleDensityAssumption)]."""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.families._bands_and_laws import (
        LARGEST_ENUMERATED as LARGEST_ENUMERATED,
        SUM_TOLERANCE as SUM_TOLERANCE,
        Bounds as Bounds,
        Outsiders as Outsiders,
        WorstMembers as WorstMembers,
        as_floats as as_floats,
        as_renormalised_laws as as_renormalised_laws,
        band_vertices as band_vertices,
        can_split_into_equal_groups as can_split_into_equal_groups,
        find_finite_outsiders as find_finite_outsiders,
        largest_rounding_of_sum as largest_rounding_of_sum,
        law_of_logits as law_of_logits,
        names_and_extreme_laws_of_band as names_and_extreme_laws_of_band,
        raise_error_for_bad_row as raise_error_for_bad_row,
        read_agreed_any_client_flag as read_agreed_any_client_flag,
        refuse_bad_entries as refuse_bad_entries,
        refuse_bad_laws as refuse_bad_laws,
        refuse_non_family as refuse_non_family,
        renormalise_rounded_laws as renormalise_rounded_laws,
        rows_are_laws as rows_are_laws,
        serves_everybody as serves_everybody,
        vertex_of_uniform_band as vertex_of_uniform_band,
        warn_of_or_refuse_outsiders as warn_of_or_refuse_outsiders,
    )
    from discreet.families._continuous import (
        ANY as ANY,
        BAND_SLACK as BAND_SLACK,
        LARGEST_CHARTED as LARGEST_CHARTED,
        ContinuousFamily,
        NodeSummary as NodeSummary,
        as_client_densities as as_client_densities,
        bound_on_sampled_mass_error as bound_on_sampled_mass_error,
        error_for_client_zero_at_every_point as error_for_client_zero_at_every_point,
        find_continuous_outsiders as find_continuous_outsiders,
        is_certain_member as is_certain_member,
        is_list_of_clients as is_list_of_clients,
        known_interval_masses_of_clients as known_interval_masses_of_clients,
        largest_log_ratios as largest_log_ratios,
        log_ratios_at_nodes as log_ratios_at_nodes,
        mixtures_of_one_kernel_or_none as mixtures_of_one_kernel_or_none,
        numbers_of_clients_missed_by_nodes as numbers_of_clients_missed_by_nodes,
        panel_masses as panel_masses,
        refuse_masses_lost_in_rounding as refuse_masses_lost_in_rounding,
        update_mass_errors_and_warn as update_mass_errors_and_warn,
        warn_of_coarse_masses as warn_of_coarse_masses,
    )
    from discreet.families._densities import (
        BoundedDensity,
        Drawable as Drawable,
        HasLogPdf as HasLogPdf,
        LogDensity as LogDensity,
        Tabulated,
        as_density as as_density,
        as_points as as_points,
        shape_of_point_values as shape_of_point_values,
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
        ONE_RULE as ONE_RULE,
        REFINED as REFINED,
        Cartesian as Cartesian,
        CellPartition as CellPartition,
        Features as Features,
        Identity as Identity,
        IntervalMasses as IntervalMasses,
        Nodes as Nodes,
        narrow_features_of_clients as narrow_features_of_clients,
    )
    from discreet.families._kernel_mixtures import GAUSSIAN as GAUSSIAN, LAPLACE as LAPLACE, Mixture
    from discreet.families._mixtures import (
        PROVED as PROVED,
        SEARCHED as SEARCHED,
        GaussianMixtures,
        LaplaceMixtures,
    )


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
