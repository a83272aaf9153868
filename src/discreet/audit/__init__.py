"""Checks of the distribution that is really drawn: exact ones from integer weights, statistical ones from samples."""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.audit._blackbox import (
        MOST_DRAWS as MOST_DRAWS,
        BlackBoxAudit,
        TestedEvent,
        binomial_probability_lower_bound as binomial_probability_lower_bound,
        binomial_probability_upper_bound as binomial_probability_upper_bound,
        black_box_audit,
        empirical_epsilon_lower_bound,
    )
    from discreet.audit._whitebox import Certificate, certificate, certificate_of

__all__ = [
    "BlackBoxAudit",
    "Certificate",
    "TestedEvent",
    "black_box_audit",
    "certificate",
    "certificate_of",
    "empirical_epsilon_lower_bound",
]
