"""The terms that clients and curator agree on before a release: a small JSON document, named by its digest."""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.agreement._agreement import (
        Agreement,
        purpose_with_sources as purpose_with_sources,
        weights_path as weights_path,
    )
    from discreet.agreement._continuous_terms import ContinuousTerms
    from discreet.agreement._family_terms import MOST_LISTED as MOST_LISTED, FamilyTerms, RowTerms as RowTerms
    from discreet.agreement._mechanism_terms import BlockTerms, JointTerms, OwnTerms, Schedule
    from discreet.domain import VERSION


__all__ = ["VERSION", "Agreement", "BlockTerms", "ContinuousTerms", "FamilyTerms", "JointTerms", "OwnTerms", "Schedule"]
