"""Public domains: the outcomes that families, agreements, engines, estimates and plans share.

A domain is public and explicit: inferring labels, bounds or cells from the data would leak them. It maps values to outcome numbers and
outcome numbers to samples. Its canonical form lets two parties check that they mean the same outcomes.
"""

from discreet._base.doors import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.domain._cells import (
        Bins,
        CellDomain as CellDomain,
        Interval,
        cell_middles as cell_middles,
        cell_names as cell_names,
        numbers_or_nan as numbers_or_nan,
        whole_numbers as whole_numbers,
    )
    from discreet.domain._domain import (
        LARGEST_VALUE as LARGEST_VALUE,
        VERSION as VERSION,
        Domain,
        Numbers,
        Outcome as Outcome,
        canonical as canonical,
        check_version as check_version,
        digest as digest,
        first_few as first_few,
        list_records as list_records,
        read_number as read_number,
        refuse_repeated_fields as refuse_repeated_fields,
    )
    from discreet.domain._labels import (
        DOMAIN_FIELDS as DOMAIN_FIELDS,
        Digested,
        Labels,
        as_domain,
        check_digest as check_digest,
        from_terms as from_terms,
        is_value as is_value,
        read_day as read_day,
    )

__all__ = ["Bins", "Digested", "Domain", "Interval", "Labels", "Numbers", "as_domain"]
