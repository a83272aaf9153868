"""The public outcomes, as one type that everybody holds: families, agreements, engines, estimates and plans.

A domain is public and explicit: inferring labels, bounds or cells from the data would leak them. It turns values into outcome numbers
and outcome numbers into samples, and it has one canonical form, so that two parties can tell whether they mean the same outcomes.
"""

from discreet.domain._bins import Bins
from discreet.domain._digested import Digested
from discreet.domain._given import as_domain
from discreet.domain._interval import Interval
from discreet.domain._labels import Labels
from discreet.domain._numbers import Numbers
from discreet.domain._role import Domain

__all__ = ["Bins", "Digested", "Domain", "Interval", "Labels", "Numbers", "as_domain"]
