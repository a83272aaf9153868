"""The walk of a record is the one that CONTRIBUTING describes: its modules and no others, entered from where the page says and no oftener."""

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
        [sys.executable, "-m", "tests.tables.walk"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    passed = {
        module: (set(callers.split(", ")), doors)
        for module, callers, doors in re.findall(r"^(\S+) from (.+) by (\d+):", told.stdout, re.MULTILINE)
    }
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## The walk of a record")[1].split("\n## ")[0]
    listed = {
        module: (set(callers.replace("`", "").split(", ")), doors)
        for module, callers, doors in re.findall(r"^\| `(\S+)` \| (.+?) \| (\d+) \|", page, re.MULTILINE)
    }
    assert passed == listed
    assert told.stdout.splitlines()[-1] in page
