"""One private sample for each client of a table, on one machine or a Spark cluster; all engines use one kernel.

`sample` takes tables in memory and files of any size; `discreet.tables.spark.sample` takes Spark data frames.
"""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals(), extra="cli"):
    from discreet.release import Secret, read_secret, write_secret
    from discreet.tables._columns import (
        Columns as Columns,
        client_names_expression as client_names_expression,
        is_integer_client_type as is_integer_client_type,
    )
    from discreet.tables._drawing import Kernel
    from discreet.tables._local import Release, sample, sample_file
    from discreet.tables._raw_counts import (
        DryRun,
        average_law_of_clients as average_law_of_clients,
        client_laws as client_laws,
        count_values_outside_domain as count_values_outside_domain,
        dry_run,
        outcome_counts_by_client as outcome_counts_by_client,
    )
    from discreet.tables._reading import Reading as Reading, refuse_unreadable_table as refuse_unreadable_table
    from discreet.tables._request import (
        Progress as Progress,
        Request,
        Summary,
        agreed_coding as agreed_coding,
        agreed_finite_family as agreed_finite_family,
        refuse_domain_beside_continuous_agreement as refuse_domain_beside_continuous_agreement,
    )
    from discreet.tables._sources import (
        FEW as FEW,
        METADATA as METADATA,
        NUMBERED as NUMBERED,
        READ as READ,
        REPLACE_HINT as REPLACE_HINT,
        STANDARD as STANDARD,
        ArrowStream as ArrowStream,
        ScannedSource as ScannedSource,
        Source as Source,
        check_batch as check_batch,
        choose_output_format as choose_output_format,
        column_without_dictionaries as column_without_dictionaries,
        columns_as_text as columns_as_text,
        examples_as_text as examples_as_text,
        file_in_both_inputs as file_in_both_inputs,
        file_source as file_source,
        is_among_inputs as is_among_inputs,
        is_text_type as is_text_type,
        open_source as open_source,
        open_table_writer as open_table_writer,
        outcomes_as_samples as outcomes_as_samples,
        refuse_missing_columns as refuse_missing_columns,
        require_unique_column_names as require_unique_column_names,
        samples_without_spreadsheet_guard as samples_without_spreadsheet_guard,
        source_of_table as source_of_table,
    )


__all__ = [
    "DryRun",
    "Kernel",
    "Release",
    "Request",
    "Secret",
    "Summary",
    "dry_run",
    "read_secret",
    "sample",
    "sample_file",
    "write_secret",
]
