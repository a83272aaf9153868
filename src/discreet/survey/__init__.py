"""Surveys: several public columns, several questions, one private report of each client."""

from discreet.survey._columns import Dates, Integers as Integers, Number, SurveyColumns as SurveyColumns
from discreet.survey._questions import (
    HistogramQuestion as HistogramQuestion,
    LinearQuestion as LinearQuestion,
    MeanQuestion as MeanQuestion,
    QuantileQuestion as QuantileQuestion,
    ShareQuestion as ShareQuestion,
    SurveyQuestion as SurveyQuestion,
    histogram,
    linear,
    mean,
    quantiles,
    shares,
)
from discreet.survey._sampler import Survey, SurveySampler
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
