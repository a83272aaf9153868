"""The paper's experiments and ours, their baselines and reports. Nothing in the library depends on it.

`_boosted`: the learnt baseline. `experiments` compute and write records; `_reports` read them and set published figures beside ours.
`_flights` is the tour of `discreet demo`. `discreet reproduce` runs the rest.
"""

from typing import TYPE_CHECKING

from discreet._base import imports_on_first_use

if TYPE_CHECKING:
    from discreet.research import data as data

with imports_on_first_use(globals()):
    from discreet.research._boosted import BoostedLaw, BoostedSampler, Training
    from discreet.research._comparison import Comparison, ComparisonRecord, compare
    from discreet.research._explorer import Explorer as Explorer, explorer_page as explorer_page
    from discreet.research._flights import (
        DesignedFlights as DesignedFlights,
        DestinationEstimate as DestinationEstimate,
        FlightRelease as FlightRelease,
        TimeZoneEstimate as TimeZoneEstimate,
        design_gain_figure as design_gain_figure,
        destinations_figure as destinations_figure,
        estimate_destinations as estimate_destinations,
        estimate_time_zones as estimate_time_zones,
        flight_release_figure as flight_release_figure,
        release_flights as release_flights,
        release_flights_with_design as release_flights_with_design,
        time_zones_figure as time_zones_figure,
    )
    from discreet.research._reports import (
        STATISTICS as STATISTICS,
        CostQuantiles as CostQuantiles,
        design_findings as design_findings,
        follow_up_findings as follow_up_findings,
        learned_design_findings as learned_design_findings,
        population_findings as population_findings,
        realised_epsilon_of_recorded_clients as realised_epsilon_of_recorded_clients,
        recorded_client_costs as recorded_client_costs,
        recorded_epsilons as recorded_epsilons,
        recorded_mechanisms as recorded_mechanisms,
        reweighted_estimate_findings as reweighted_estimate_findings,
        shifted_clients_findings as shifted_clients_findings,
        write_report as write_report,
    )
    from discreet.research.experiments import (
        FIGURES as FIGURES,
        ORDERED as ORDERED,
        PAPER_DIVERGENCES as PAPER_DIVERGENCES,
        REPORTS as REPORTS,
        MixtureClient as MixtureClient,
        RecordedRun,
        RingLaw as RingLaw,
        named_experiment as named_experiment,
        records_path as records_path,
        reproduce,
        requested_experiment_names as requested_experiment_names,
        run_experiment as run_experiment,
    )


__all__ = [
    "BoostedLaw",
    "BoostedSampler",
    "Comparison",
    "ComparisonRecord",
    "RecordedRun",
    "Training",
    "compare",
    "reproduce",
]
