"""Checks of the distribution that is really drawn: exact ones from integer weights, statistical ones from samples."""

from discreet._base.doors import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.audit._blackbox import (
        MOST_DRAWS as MOST_DRAWS,
        BlackBoxAudit,
        TestedEvent,
        black_box_audit,
        empirical_epsilon_lower_bound,
        least_probability as least_probability,
        most_probability as most_probability,
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
