"""Public domains: the outcomes that families, agreements, engines, estimates and plans share.

A domain is public and explicit: inferring labels, bounds or cells from the data would leak them. It maps values to outcome numbers and
outcome numbers to samples. Its canonical form lets two parties check that they mean the same outcomes.
"""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.domain._cells import (
        Bins,
        CellDomain as CellDomain,
        Interval,
        cell_middles as cell_middles,
        cell_names as cell_names,
        records_as_floats_or_nan as records_as_floats_or_nan,
        whole_floats_as_integers as whole_floats_as_integers,
    )
    from discreet.domain._coding import (
        FIRST_MARK as FIRST_MARK,
        MARK_ABOVE as MARK_ABOVE,
        MARK_BELOW as MARK_BELOW,
        MARK_LISTED as MARK_LISTED,
        MARK_MISSING as MARK_MISSING,
        MARK_NAN as MARK_NAN,
        MARK_OUTSIDE as MARK_OUTSIDE,
        MARK_UNREADABLE as MARK_UNREADABLE,
        NEAREST as NEAREST,
        NULLS as NULLS,
        WIDE_MARKS as WIDE_MARKS,
        Coding as Coding,
        MisfitCounts as MisfitCounts,
        codes_or_misfit_marks_expression as codes_or_misfit_marks_expression,
        column_expression as column_expression,
        fit_coding_to_column as fit_coding_to_column,
        is_whole_number_text as is_whole_number_text,
        outcome_codes_expression as outcome_codes_expression,
        resolve_and_count_misfit_marks as resolve_and_count_misfit_marks,
        widened_mark_for_records as widened_mark_for_records,
    )
    from discreet.domain._domain import (
        LARGEST_VALUE as LARGEST_VALUE,
        VERSION as VERSION,
        Domain,
        Numbers,
        Outcome as Outcome,
        canonical_json as canonical_json,
        check_document_version as check_document_version,
        first_few_as_text as first_few_as_text,
        json_hook_refusing_repeated_fields as json_hook_refusing_repeated_fields,
        read_json_number as read_json_number,
        records_as_list as records_as_list,
        sha256_digest as sha256_digest,
    )
    from discreet.domain._labels import (
        DOMAIN_FIELDS as DOMAIN_FIELDS,
        Digested,
        Labels,
        as_domain,
        check_digest_format as check_digest_format,
        domain_from_terms as domain_from_terms,
        is_missing as is_missing,
        is_number_or_number_text as is_number_or_number_text,
        read_date as read_date,
        spelling_hint as spelling_hint,
        text_without_invisible_differences as text_without_invisible_differences,
    )


__all__ = ["Bins", "Digested", "Domain", "Interval", "Labels", "Numbers", "as_domain"]
