"""Private samplers: from a client's distribution to its output distribution, and the exact release of one sample."""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.families import LineCells as LineCells
    from discreet.mechanisms._atoms import (
        DEFAULT_CELLS as DEFAULT_CELLS,
        CellAtoms as CellAtoms,
        Cells,
        DensityAtoms as DensityAtoms,
        Discretisation as Discretisation,
    )
    from discreet.mechanisms._mechanism_names import (
        MECHANISM_NAMES as MECHANISM_NAMES,
        MECHANISMS,
        REPORTS_MECHANISM as REPORTS_MECHANISM,
        SERVED,
        SERVING as SERVING,
        Mechanism,
        check_mechanism,
        installed_mechanism as installed_mechanism,
        mechanism_for,
        population_mechanism,
        refuse_non_mechanism as refuse_non_mechanism,
        sampler_named,
    )
    from discreet.mechanisms._multisets import (
        AROUND as AROUND,
        MOST_JOINT_SAMPLES as MOST_JOINT_SAMPLES,
        SAMPLES_FIX as SAMPLES_FIX,
        Multisets,
    )
    from discreet.mechanisms._optimal_linear_mollifier import (
        MEMBERS_ONLY_MESSAGE as MEMBERS_ONLY_MESSAGE,
        LinearSampler,
        MollifierSampler,
        OptimalSampler,
        ProjectingSampler as ProjectingSampler,
        nearest_member,
        normalised_law as normalised_law,
    )
    from discreet.mechanisms._own import OwnSampler
    from discreet.mechanisms._own_weights import outcomes_from_uniform_integers as outcomes_from_uniform_integers
    from discreet.mechanisms._points import Density, PointAtoms as PointAtoms, Points
    from discreet.mechanisms._reports import (
        BLOCK_KINDS as BLOCK_KINDS,
        LARGEST_OUTPUT as LARGEST_OUTPUT,
        AffineBlocks as AffineBlocks,
        BlockFamily as BlockFamily,
        MaskedSubsets as MaskedSubsets,
        RankedSubsets as RankedSubsets,
        ReportCounts,
        Reports as Reports,
        ReportSampler,
        best_subset_width_and_variance as best_subset_width_and_variance,
        choose_blocks as choose_blocks,
        fraction_below_exp_epsilon as fraction_below_exp_epsilon,
        least_weight_of_uniform_report as least_weight_of_uniform_report,
        make_blocks_of_kind as make_blocks_of_kind,
        randomise_outcomes_into_reports as randomise_outcomes_into_reports,
        require_drawable_record_total as require_drawable_record_total,
        require_report_numbers as require_report_numbers,
        share_variance_in_uniform_population as share_variance_in_uniform_population,
    )
    from discreet.mechanisms._sampler import (
        AnyFamily as AnyFamily,
        Client as Client,
        Sampler,
        refuse_non_sampler as refuse_non_sampler,
    )
    from discreet.mechanisms._several_samples import ComposedSampler, JointSampler
    from discreet.mechanisms._transport_sampler import TransportSampler
    from discreet.projection import (
        OutputLaw,
        epsilon_for as epsilon_for,
        largest_risk_over_all_densities as largest_risk_over_all_densities,
        mollifier_epsilon_reaching_risk as mollifier_epsilon_reaching_risk,
        nu_for as nu_for,
        worst_case_on_atoms as worst_case_on_atoms,
    )


__all__ = [
    "MECHANISMS",
    "SERVED",
    "Cells",
    "ComposedSampler",
    "Density",
    "JointSampler",
    "LinearSampler",
    "Mechanism",
    "MollifierSampler",
    "Multisets",
    "OptimalSampler",
    "OutputLaw",
    "OwnSampler",
    "Points",
    "ReportCounts",
    "ReportSampler",
    "Sampler",
    "TransportSampler",
    "check_mechanism",
    "mechanism_for",
    "nearest_member",
    "population_mechanism",
    "sampler_named",
]
