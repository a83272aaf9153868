"""Coverage-guided fuzzing of every public entry point: `make fuzz`, or `python tools/fuzz/entry_points.py -max_total_time=600`."""

import sys

import atheris

with atheris.instrument_imports(include=["discreet"]):
    from tests.fuzz.attacks import attack_any


def main() -> None:
    atheris.Setup(sys.argv, attack_any)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
