"""Notions of privacy as values: each knows its trade-off function, its hockey-stick profile and its box for a band."""

from discreet.privacy._epsilon import Approximate, Pure
from discreet.privacy._functional import Functional
from discreet.privacy._gaussian import Gaussian
from discreet.privacy._notion import Privacy, extreme_masses
from discreet.privacy._parsing import chosen_privacy

__all__ = ["Approximate", "Functional", "Gaussian", "Privacy", "Pure", "chosen_privacy", "extreme_masses"]
