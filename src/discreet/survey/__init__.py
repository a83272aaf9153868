"""Surveys: several public columns, several questions, one private report of each client."""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.survey._columns import (
        Dates,
        JointColumns as JointColumns,
        Number,
        SurveyColumns as SurveyColumns,
        cell_edges as cell_edges,
        survey_columns_from_terms as survey_columns_from_terms,
    )
    from discreet.survey._parts import (
        Marginals as Marginals,
        asks_for_table as asks_for_table,
        column_subsets as column_subsets,
        columns_in_survey_order as columns_in_survey_order,
        survey_parts_from_terms as survey_parts_from_terms,
    )
    from discreet.survey._questions import (
        HistogramQuestion as HistogramQuestion,
        LinearQuestion as LinearQuestion,
        MeanQuestion as MeanQuestion,
        QuantileQuestion as QuantileQuestion,
        ShareQuestion as ShareQuestion,
        Survey,
        SurveyQuestion as SurveyQuestion,
        histogram,
        linear,
        mean,
        quantiles,
        shares,
        survey_questions_from_terms as survey_questions_from_terms,
    )
    from discreet.survey._sampler import SurveySampler
    from discreet.survey._strategies import (
        Part as Part,
        Tree as Tree,
        Windows as Windows,
        variance_per_contrast as variance_per_contrast,
    )
    from discreet.survey._weighted_blocks import WeightedBlocks as WeightedBlocks


__all__ = ["Dates", "Number", "Survey", "SurveySampler", "histogram", "linear", "mean", "quantiles", "shares"]
