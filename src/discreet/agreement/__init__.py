"""What clients and curator agree on before anything is released, as a small JSON document that names itself by its digest."""

from discreet.agreement._agreement import (
    VERSION,
    Agreement,
    _refuse_repeats as _refuse_repeats,
    learned_purpose as learned_purpose,
    weights_path as weights_path,
)
from discreet.agreement._continuous_terms import ContinuousTerms
from discreet.agreement._family_terms import MOST_LISTED_WEIGHTS as MOST_LISTED_WEIGHTS, FamilyTerms
from discreet.agreement._mechanism_terms import BlockTerms, JointTerms

__all__ = ["VERSION", "Agreement", "BlockTerms", "ContinuousTerms", "FamilyTerms", "JointTerms"]
