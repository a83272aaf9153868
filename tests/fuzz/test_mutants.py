"""A smaller number of what `python -m tests.fuzz.mutants` and `tests.fuzz.signals` try in a soak."""

import subprocess
import sys

import pytest

from tests.fuzz.mutants import CANARY, foreign, hunted
from tests.soaking import wide


@pytest.mark.slow
def test_no_damaged_input_crashes_panics_or_shows_what_is_not_its_own() -> None:
    assert hunted(wide(400, 100), seed=0) == []


def test_what_is_not_the_input_s_own_is_noticed() -> None:
    assert foreign(["a", 7], b"...a..." + (7).to_bytes(8, "little"), plain=True) is None
    assert foreign(["b"], b"...a...", plain=True) == "client 'b' is not in the input"
    assert foreign([8], (7).to_bytes(8, "little"), plain=True) is not None
    assert foreign([f"a{CANARY}"], b"", plain=False) == "a client is the canary"


@pytest.mark.slow
def test_no_signal_leaves_a_record_on_disk() -> None:
    """Seven kinds of signals, while records larger than memory or from standard input lie on disk."""
    command = [sys.executable, "-m", "tests.fuzz.signals", "--signals", "1"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stdout == "7 signals, 7 of them while records lay on disk: none was left\n"
