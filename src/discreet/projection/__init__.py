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
        improve_slopes_by_newton as improve_slopes_by_newton,
        row_slices_within_memory as row_slices_within_memory,
        scale_laws as scale_laws,
        solve_rows_on_support as solve_rows_on_support,
        solve_slopes_and_lifts as solve_slopes_and_lifts,
        solve_support_lists as solve_support_lists,
        solve_uniform_support_lists as solve_uniform_support_lists,
    )
    from discreet.projection._compiled import (
        bound_at as bound_at,
        inspect_law as inspect_law,
        solve as solve,
        solve_held as solve_held,
        solve_uniform_compiled as solve_uniform_compiled,
    )
    from discreet.projection._output_law import OutputLaw as OutputLaw, OutputProblem as OutputProblem
    from discreet.projection._output_solver import OutputSolver as OutputSolver
    from discreet.projection._worst_case import (
        epsilon_for as epsilon_for,
        largest_risk_over_all_densities as largest_risk_over_all_densities,
        mollifier_epsilon_for as mollifier_epsilon_for,
        nu_for as nu_for,
        point_mass_risk as point_mass_risk,
        sampler_risk as sampler_risk,
        worst_case_on_atoms as worst_case_on_atoms,
    )


__all__ = ["Affine", "Box"]
