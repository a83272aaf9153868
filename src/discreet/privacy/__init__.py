"""Notions of privacy as values: each knows its trade-off function, its hockey-stick profile and its box for a band."""

from discreet.privacy._approximate import Approximate
from discreet.privacy._choice import chosen_privacy
from discreet.privacy._functional import Functional
from discreet.privacy._gaussian import Gaussian
from discreet.privacy._notion import Privacy, extreme_masses
from discreet.privacy._pure import Pure

__all__ = ["Approximate", "Functional", "Gaussian", "Privacy", "Pure", "chosen_privacy", "extreme_masses"]
