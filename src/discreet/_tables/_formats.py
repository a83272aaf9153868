"""Tables as files: which ending means which format, and the name that stands for standard input or output."""

STANDARD = "-"
WRITTEN = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}
TEXTS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "json lines", ".ndjson": "json lines", ".json": "json lines"}
READ = {**WRITTEN, ".arrows": "arrow stream", **TEXTS}
IN_FOLDERS = {*READ} - {".json"}  # which is as often a document beside a table
AGREEMENT_FILE = "_agreement.json"  # where a folder of samples holds their agreement, if its files cannot
