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
READ = {**WRITTEN, ".arrows": "arrow stream"}
