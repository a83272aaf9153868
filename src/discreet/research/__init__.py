"""The paper's experiments and ours, their baselines and reports. Nothing in the library depends on it.

`_boosted`: the learnt baseline. `_published`: cited figures of others. `experiments` compute and write records; `_reports` read
them. `discreet reproduce` and `discreet demo` run it.
"""

from discreet._base.doors import imports_on_first_use
from discreet.research import data as data

with imports_on_first_use(globals()):
    from discreet.research._boosted import BoostedLaw, BoostedSampler, Training
    from discreet.research._comparison import Comparison, ComparisonRecord, compare
    from discreet.research._explorer import Explorer as Explorer, page as page
    from discreet.research._reports._designs import (
        design_findings as design_findings,
        learned_findings as learned_findings,
        reweighted_findings as reweighted_findings,
        shift_findings as shift_findings,
    )
    from discreet.research._reports._flights import (
        design_gain_figure as design_gain_figure,
        flights_figure as flights_figure,
        lesson_figure as lesson_figure,
        reports_figure as reports_figure,
    )
    from discreet.research._reports._follow_up import (
        follow_up_findings as follow_up_findings,
    )
    from discreet.research._reports._pages import (
        STATISTICS as STATISTICS,
        CostQuantiles as CostQuantiles,
        client_costs as client_costs,
        realised_epsilon as realised_epsilon,
        recorded_epsilons as recorded_epsilons,
        recorded_mechanisms as recorded_mechanisms,
    )
    from discreet.research._reports._population import (
        population_findings as population_findings,
    )
    from discreet.research._reproduction import (
        DESIGNS as DESIGNS,
        FIGURES as FIGURES,
        FOLLOWING as FOLLOWING,
        LEARNED as LEARNED,
        POPULATION as POPULATION,
        choose_experiments as choose_experiments,
        experiment as experiment,
        reproduce,
        write_designs as write_designs,
        write_follow_up as write_follow_up,
        write_learned as write_learned,
        write_paper as write_paper,
        write_population as write_population,
    )
    from discreet.research.experiments._flights import (
        DesignedFlights as DesignedFlights,
        DestinationEstimate as DestinationEstimate,
        FlightRelease as FlightRelease,
        TimeZoneEstimate as TimeZoneEstimate,
        designed_flights as designed_flights,
        learnt_time_zones as learnt_time_zones,
        released_flights as released_flights,
        reported_destinations as reported_destinations,
    )
    from discreet.research.experiments._follow_up import ORDERED as ORDERED
    from discreet.research.experiments._paper_figures import MixtureClient as MixtureClient, RingLaw as RingLaw
    from discreet.research.experiments._records import (
        PAPER_DIVERGENCES as PAPER_DIVERGENCES,
        RecordedRun,
        records_path as records_path,
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
