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
        blocks_named as blocks_named,
        read_report_numbers as read_report_numbers,
    )
    from discreet.mechanisms._reports._choice import (
        best_subset_width_and_variance as best_subset_width_and_variance,
        choose_blocks as choose_blocks,
        worst_variance as worst_variance,
    )
    from discreet.mechanisms._reports._counts import (
        ReportCounts as ReportCounts,
    )
    from discreet.mechanisms._reports._sampler import (
        LARGEST_OUTPUT as LARGEST_OUTPUT,
        ReportSampler as ReportSampler,
        check_record_total as check_record_total,
        draw_reports as draw_reports,
        least_uniform_weight as least_uniform_weight,
        report_bound as report_bound,
    )

__all__: list[str] = []
