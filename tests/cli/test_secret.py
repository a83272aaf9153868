import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]


def test_a_secret_is_made_once_for_its_owner_alone(run: Run, refusal: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "release.secret"
    assert "never publish it" in run("secret", str(path)).stdout
    made = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert "exists" in refusal("secret", str(path), "--json")
    assert path.read_bytes() == made


def test_json_names_the_file_and_not_what_is_in_it(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "release.secret"
    result = run("secret", str(path), "--json")
    assert json.loads(result.stdout) == {"file": str(path), "mode": "0600"}
    made = path.read_bytes()
    assert made.hex() not in result.output
    assert made.decode("latin-1") not in result.output
