"""Surveys: several public columns, several questions, one private report of each client."""

from discreet._base.doors import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.survey._coin import (
        Marginals as Marginals,
        effects_of as effects_of,
        is_table as is_table,
        survey_order as survey_order,
    )
    from discreet.survey._columns import (
        Dates,
        Integers as Integers,
        Number,
        SurveyColumns as SurveyColumns,
        read_columns as read_columns,
    )
    from discreet.survey._part_terms import read_parts as read_parts
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
        read_questions as read_questions,
        shares,
    )
    from discreet.survey._sampler import SurveySampler
    from discreet.survey._strategies import (
        CellOf as CellOf,
        Part as Part,
        Strategy as Strategy,
        Together as Together,
        Tree as Tree,
        Windows as Windows,
        cell_edges as cell_edges,
        level_variance as level_variance,
    )
    from discreet.survey._weighted_blocks import WeightedBlocks as WeightedBlocks

__all__ = ["Dates", "Number", "Survey", "SurveySampler", "histogram", "linear", "mean", "quantiles", "shares"]
