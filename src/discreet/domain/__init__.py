"""The public outcomes, as one type that everybody holds: families, agreements, engines, estimates and plans.

A domain is public and explicit: inferring labels, bounds or cells from the data would leak them. It turns values into outcome numbers
and outcome numbers into samples, and it has one canonical form, so that two parties can tell whether they mean the same outcomes.
"""

from discreet.domain._cells import Bins, Interval
from discreet.domain._domain import Domain, Numbers
from discreet.domain._labels import Digested, Labels
from discreet.domain._parsing import as_domain

__all__ = ["Bins", "Digested", "Domain", "Interval", "Labels", "Numbers", "as_domain"]
