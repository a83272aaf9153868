"""Block reports, for populations alone: the blocks that a report can name, the sampler that draws one, and how many hold each outcome."""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.mechanisms._reports._blocks import (
        BLOCK_KINDS as BLOCK_KINDS,
        LARGEST_TABLE as LARGEST_TABLE,
        AffineBlocks as AffineBlocks,
        BlockFamily as BlockFamily,
        MaskedSubsets as MaskedSubsets,
        RankedSubsets as RankedSubsets,
        Reports as Reports,
        make_blocks_of_kind as make_blocks_of_kind,
        require_report_numbers as require_report_numbers,
    )
    from discreet.mechanisms._reports._choice import (
        best_subset_width_and_variance as best_subset_width_and_variance,
        choose_blocks as choose_blocks,
        share_variance_in_uniform_population as share_variance_in_uniform_population,
    )
    from discreet.mechanisms._reports._counts import (
        ReportCounts as ReportCounts,
    )
    from discreet.mechanisms._reports._sampler import (
        LARGEST_OUTPUT as LARGEST_OUTPUT,
        ReportSampler as ReportSampler,
        fraction_below_exp_epsilon as fraction_below_exp_epsilon,
        least_weight_of_uniform_report as least_weight_of_uniform_report,
        randomise_outcomes_into_reports as randomise_outcomes_into_reports,
        require_drawable_record_total as require_drawable_record_total,
    )

__all__: list[str] = []
