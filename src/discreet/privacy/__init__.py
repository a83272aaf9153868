"""Notions of privacy as values: each knows its trade-off function, its hockey-stick profile and its box for a band."""

from discreet.privacy.approximate import Approximate
from discreet.privacy.choice import promised
from discreet.privacy.functional import Functional
from discreet.privacy.gaussian import Gaussian
from discreet.privacy.notion import Privacy, extreme_masses
from discreet.privacy.pure import Pure

__all__ = ["Approximate", "Functional", "Gaussian", "Privacy", "Pure", "extreme_masses", "promised"]
