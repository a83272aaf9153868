"""From counts to bounds, below every estimate: intervals, the inverse of a mechanism, averages, least squares, and reweighted examples."""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.estimation._inference._intervals import (
        AT_LIMIT as AT_LIMIT,
        Ends as Ends,
        Shares as Shares,
        average_upper_bound as average_upper_bound,
        clopper_pearson_ends_for_miss as clopper_pearson_ends_for_miss,
        clopper_pearson_interval_ends as clopper_pearson_interval_ends,
        exact_interval_ends as exact_interval_ends,
        first_outcome_with_share_beyond_limit as first_outcome_with_share_beyond_limit,
        one_sided_miss_probability as one_sided_miss_probability,
        released_interval_ends_for_inversion as released_interval_ends_for_inversion,
    )
    from discreet.estimation._inference._inversion import (
        Inversion as Inversion,
        Line as Line,
        inversion_of as inversion_of,
        inversion_of_joint_sample as inversion_of_joint_sample,
        invert_released_intervals as invert_released_intervals,
        lower_ends_with_sum_at_most_one as lower_ends_with_sum_at_most_one,
        nearest_law as nearest_law,
        share_bounds_from_family_alone as share_bounds_from_family_alone,
    )
    from discreet.estimation._inference._least_squares import (
        ReportSums as ReportSums,
        ShareTables as ShareTables,
        TreeLevels as TreeLevels,
        coefficient_sums_of_reports as coefficient_sums_of_reports,
        report_sampler_of_survey_part as report_sampler_of_survey_part,
        unbiased_shares_from_reports as unbiased_shares_from_reports,
    )
    from discreet.estimation._inference._reweighting import (
        Reweighted as Reweighted,
        example_laws as example_laws,
        example_laws_for_reports as example_laws_for_reports,
        reweight_examples as reweight_examples,
        reweight_examples_to_reports as reweight_examples_to_reports,
    )
    from discreet.estimation._inference._statistics import (
        Estimate as Estimate,
        OutcomeFunction as OutcomeFunction,
        SupportStatistics as SupportStatistics,
        evaluate_function_on_outcomes as evaluate_function_on_outcomes,
        largest_report_sum as largest_report_sum,
        numeric_outcomes as numeric_outcomes,
        outcome_value_function as outcome_value_function,
        parse_statistic_parameter as parse_statistic_parameter,
        quantile_interval_fields as quantile_interval_fields,
        quantile_of_shares as quantile_of_shares,
        squared_deviation_function as squared_deviation_function,
        sum_values_in_each_report as sum_values_in_each_report,
        threshold_indicator as threshold_indicator,
    )

__all__: list[str] = []
