"""The box around a reference measure, and the projection onto it that is optimal for every f-divergence at once."""

from discreet._base.doors import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet._base.kernels import first_bad_row as first_bad_row, processor_count as processor_count
    from discreet.projection._box import (
        NARROW as NARROW,
        NEGLIGIBLE as NEGLIGIBLE,
        Affine,
        Box,
        blocks as blocks,
        estimated_numpy_seconds as estimated_numpy_seconds,
        first_invalid_row as first_invalid_row,
        improve_slopes as improve_slopes,
        scale_laws as scale_laws,
        solve_held_rows as solve_held_rows,
        solve_listed as solve_listed,
        solve_rows as solve_rows,
        solve_uniform as solve_uniform,
    )
    from discreet.projection._compiled import (
        bound_at as bound_at,
        inspect_law as inspect_law,
        solve as solve,
        solve_held as solve_held,
        solve_uniform_compiled as solve_uniform_compiled,
    )

__all__ = ["Affine", "Box"]
