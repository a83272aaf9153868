"""The curator's side: estimates of the population from one private sample of each client, with intervals."""

from discreet._base import imports_on_first_use, old_names

with imports_on_first_use(globals(), extra="cli"):
    from discreet.estimation._client_tables import (
        ClientGroups as ClientGroups,
        SharedClients as SharedClients,
        count_shared_clients as count_shared_clients,
        refuse_clients_in_several_sources as refuse_clients_in_several_sources,
    )
    from discreet.estimation._counting import (
        LARGEST as LARGEST,
        MOST as MOST,
        bin_cells as bin_cells,
        cells_as_bins as cells_as_bins,
        line_cells_of as line_cells_of,
        outcome_reference_masses as outcome_reference_masses,
    )
    from discreet.estimation._from_releases import (
        InvertedPopulation,
        inverted_population,
        population,
        reported_average,
        reported_population,
        reported_statistic,
    )
    from discreet.estimation._groups import (
        GroupedPopulation,
        PooledPopulation,
        answer_groups,
        estimate_groups,
        pooled_population,
        shares_within,
    )
    from discreet.estimation._intervals import Shares
    from discreet.estimation._inversion import Inversion, Line, inversion_of, nearest_law
    from discreet.estimation._planning import (
        LEAST_EPSILON as LEAST_EPSILON,
        MOST_CLIENTS as MOST_CLIENTS,
        Outlook,
        clients_for,
        epsilon_for_accuracy,
        exact_variance,
        outlook,
        variance_excess,
        variance_excess_or_none as variance_excess_or_none,
    )
    from discreet.estimation._population import AnyPopulation as AnyPopulation, Population, ReportedPopulation
    from discreet.estimation._record import (
        change_record as change_record,
        empty_survey_record as empty_survey_record,
        estimate_notes as estimate_notes,
        estimate_record as estimate_record,
        group_record as group_record,
        inverted_record as inverted_record,
        law_fidelities as law_fidelities,
        outcome_names_within as outcome_names_within,
        pooled_record as pooled_record,
        questions_with_shares_within as questions_with_shares_within,
        share_rows_by_name as share_rows_by_name,
        shares_within_record as shares_within_record,
        survey_change_record as survey_change_record,
        survey_groups_record as survey_groups_record,
        survey_notes as survey_notes,
        survey_record as survey_record,
        trust_notes as trust_notes,
        unnamed_report_notes as unnamed_report_notes,
    )
    from discreet.estimation._reweighting import Reweighted, reweight_examples as reweight_examples
    from discreet.estimation._sample_tables import (
        COUNTED as COUNTED,
        PLACE as PLACE,
        ReportTally as ReportTally,
        SampleTally as SampleTally,
        coding_and_joint_sampler as coding_and_joint_sampler,
        coding_and_sampler as coding_and_sampler,
        read_survey_reports as read_survey_reports,
        survey_reports_by_group as survey_reports_by_group,
        tally as tally,
        tally_by_group as tally_by_group,
        tally_joint_samples as tally_joint_samples,
        tally_reports as tally_reports,
        write_synthetic_rows as write_synthetic_rows,
        write_weighted_samples as write_weighted_samples,
    )
    from discreet.estimation._shifts import (
        Change,
        Liars,
        ReportLiars,
        SurveyChange,
        change,
        liars,
        liars_per_half_interval as liars_per_half_interval,
        report_liars,
        survey_change,
    )
    from discreet.estimation._statistics import Estimate
    from discreet.estimation._surveys import SurveyAnswer, SurveyAnswers, SurveyOutlook, answer_survey, survey_outlook
    from discreet.estimation._ways import (
        MOST_REHEARSED as MOST_REHEARSED,
        PopulationWay as PopulationWay,
        Rehearsal as Rehearsal,
        RoundsCost,
        SamplerCost as SamplerCost,
        Way,
        Ways,
        compare_population_ways as compare_population_ways,
        compare_samplers as compare_samplers,
        rehearse_collections as rehearse_collections,
        rounds_cost,
        ways_to_spend,
    )


__all__ = [
    "Change",
    "Estimate",
    "GroupedPopulation",
    "Inversion",
    "InvertedPopulation",
    "Liars",
    "Line",
    "Outlook",
    "PooledPopulation",
    "Population",
    "ReportLiars",
    "ReportedPopulation",
    "Reweighted",
    "RoundsCost",
    "Shares",
    "SurveyAnswer",
    "SurveyAnswers",
    "SurveyChange",
    "SurveyOutlook",
    "Way",
    "Ways",
    "answer_groups",
    "answer_survey",
    "change",
    "clients_for",
    "epsilon_for_accuracy",
    "estimate_groups",
    "exact_variance",
    "inversion_of",
    "inverted_population",
    "liars",
    "nearest_law",
    "outlook",
    "pooled_population",
    "population",
    "report_liars",
    "reported_average",
    "reported_population",
    "reported_statistic",
    "rounds_cost",
    "shares_within",
    "survey_change",
    "survey_outlook",
    "variance_excess",
    "ways_to_spend",
]

__getattr__ = old_names(__name__, {"ways": "ways_to_spend"})
