"""The notion that a caller means: `epsilon=1.0` is short for `privacy=Pure(1.0)`, and one of the two is given."""

from __future__ import annotations

from typing import Any

from discreet.errors import DiscreetError
from discreet.privacy._approximate import Approximate
from discreet.privacy._notion import Privacy
from discreet.privacy._pure import Pure


def chosen_privacy(epsilon: float | None, privacy: Privacy | None) -> Privacy:
    """The notion given by either; (epsilon, 0)-LDP is epsilon-LDP."""
    if (epsilon is None) == (privacy is None):
        raise DiscreetError(
            f"epsilon = {epsilon!r} and privacy = {privacy!r}: pass one of the two, epsilon= (a number, for pure privacy) or privacy= "
            "(Pure(...), Approximate(...), Gaussian(...), Functional(...))"
        )
    if privacy is None:
        given: Any = epsilon
        return Pure(given)
    if not isinstance(privacy, Privacy):
        raise DiscreetError(
            f"privacy = {privacy!r} is not a notion of privacy; pass Pure(...), Approximate(...), Gaussian(...) or Functional(...)"
        )
    return Pure(privacy.epsilon) if isinstance(privacy, Approximate) and not privacy.delta else privacy
