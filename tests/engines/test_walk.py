"""The walk of a record is the one that CONTRIBUTING describes: no module on the way that is not on the page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_record_passes_the_modules_on_the_page_and_no_others() -> None:
    """In a process of its own: what tests did before has loaded and compiled other things."""
    told = subprocess.run(
        [sys.executable, "-m", "tests.engines.walk"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    passed = set(re.findall(r"^([a-z_.]+):", told.stdout, re.MULTILINE))
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## The walk of a record")[1].split("\n## ")[0]
    listed = set(re.findall(r"`((?:cli|tables|engines)\.\w+)`", page)) - {"engines.grouping"}  # compiled, for more rows
    assert passed == listed
    assert told.stdout.splitlines()[-1] in page
