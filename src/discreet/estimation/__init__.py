"""The curator's side: the population behind one private sample of each client, and how wrong it can be."""

from discreet.estimation._from_samples import population
from discreet.estimation._inversion import Inversion, Line, inversion_of, nearest_law
from discreet.estimation._liars import Liars, liars
from discreet.estimation._planning import Outlook, clients_for, epsilon_for_accuracy, exact_variance, outlook
from discreet.estimation._population import Estimate, Population, Shares
from discreet.estimation._reports import (
    ReportedPopulation,
    ReportLiars,
    report_liars,
    reported_average,
    reported_population,
)
from discreet.estimation._reweighting import Reweighted
from discreet.estimation._several import RoundsCost, Way, Ways, rounds_cost, ways

__all__ = [
    "Estimate",
    "Inversion",
    "Liars",
    "Line",
    "Outlook",
    "Population",
    "ReportLiars",
    "ReportedPopulation",
    "Reweighted",
    "RoundsCost",
    "Shares",
    "Way",
    "Ways",
    "clients_for",
    "epsilon_for_accuracy",
    "exact_variance",
    "inversion_of",
    "liars",
    "nearest_law",
    "outlook",
    "population",
    "report_liars",
    "reported_average",
    "reported_population",
    "rounds_cost",
    "ways",
]
