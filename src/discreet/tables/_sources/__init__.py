"""Where records come from, and how tables are written: tables in memory, streams, and files in Parquet, Arrow and text.

Files may be hostile: they are looked at before a reader follows their pointers or unpacks them.
"""

from discreet._base import imports_on_first_use

with imports_on_first_use(globals()):
    from discreet.tables._sources._arrow import (
        ArrowStream as ArrowStream,
        agreement_id_column as agreement_id_column,
        arrow_column_as_numbers as arrow_column_as_numbers,
        arrow_column_as_polars_series as arrow_column_as_polars_series,
        cast_column as cast_column,
        check_batch as check_batch,
        column_without_dictionaries as column_without_dictionaries,
        is_list_type as is_list_type,
        is_text_type as is_text_type,
        numbers_as_arrow_column as numbers_as_arrow_column,
        outcomes_as_samples as outcomes_as_samples,
        polars_schema_of_arrow as polars_schema_of_arrow,
        require_unique_column_names as require_unique_column_names,
        take_rows_of_column as take_rows_of_column,
    )
    from discreet.tables._sources._files import (
        AGREEMENT_FILE as AGREEMENT_FILE,
        READ as READ,
        REPLACE_HINT as REPLACE_HINT,
        STANDARD as STANDARD,
        TEXTS as TEXTS,
        RowGroups as RowGroups,
        ScratchBlock as ScratchBlock,
        ScratchFile as ScratchFile,
        choose_output_format as choose_output_format,
        detect_file_format as detect_file_format,
        partition_keys_in_path as partition_keys_in_path,
        table_ending_without_gz as table_ending_without_gz,
    )
    from discreet.tables._sources._opening import (
        file_in_both_inputs as file_in_both_inputs,
        file_source as file_source,
        is_among_inputs as is_among_inputs,
        open_source as open_source,
        open_table_writer as open_table_writer,
        source_of_table as source_of_table,
    )
    from discreet.tables._sources._source import (
        FEW as FEW,
        METADATA as METADATA,
        NUMBERED as NUMBERED,
        TEXT_KINDS as TEXT_KINDS,
        ParquetSource as ParquetSource,
        ScannedSource as ScannedSource,
        Source as Source,
        columns_as_text as columns_as_text,
        distinct_values as distinct_values,
        examples_as_text as examples_as_text,
        refuse_missing_columns as refuse_missing_columns,
    )
    from discreet.tables._sources._text_files import (
        NUMBER as NUMBER,
        RUN as RUN,
        samples_without_spreadsheet_guard as samples_without_spreadsheet_guard,
        spreadsheet_guarded_expression as spreadsheet_guarded_expression,
    )

__all__: list[str] = []
