"""The box around a reference measure, and the projection onto it that is optimal for every f-divergence, of laws and of densities."""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet._base.kernels import processor_count as processor_count, run_on_row_slices as run_on_row_slices
    from discreet.projection._box import (
        NARROW as NARROW,
        NEGLIGIBLE as NEGLIGIBLE,
        STEEPEST_EXPONENT as STEEPEST_EXPONENT,
        Affine,
        Box,
        estimated_numpy_seconds as estimated_numpy_seconds,
        first_invalid_row as first_invalid_row,
        laws_times_slopes as laws_times_slopes,
        row_slices_within_memory as row_slices_within_memory,
        solve_slopes_and_lifts as solve_slopes_and_lifts,
        solve_slopes_and_lifts_of_padded_lists as solve_slopes_and_lifts_of_padded_lists,
        solve_slopes_and_lifts_on_support as solve_slopes_and_lifts_on_support,
        solve_slopes_and_lifts_over_uniform as solve_slopes_and_lifts_over_uniform,
    )
    from discreet.projection._compiled import (
        bound_at as bound_at,
        solve_slope_and_lift as solve_slope_and_lift,
        solve_slope_and_lift_on_support as solve_slope_and_lift_on_support,
        solve_slope_and_lift_over_uniform as solve_slope_and_lift_over_uniform,
        support_size_and_mass_above as support_size_and_mass_above,
    )
    from discreet.projection._output_law import OutputLaw as OutputLaw, OutputProblem as OutputProblem
    from discreet.projection._output_solver import OutputSolver as OutputSolver
    from discreet.projection._worst_case import (
        epsilon_for as epsilon_for,
        largest_risk_over_all_densities as largest_risk_over_all_densities,
        mollifier_epsilon_reaching_risk as mollifier_epsilon_reaching_risk,
        nu_for as nu_for,
        point_mass_risk as point_mass_risk,
        worst_case_on_atoms as worst_case_on_atoms,
        worst_case_over_family as worst_case_over_family,
    )


__all__ = ["Affine", "Box"]
