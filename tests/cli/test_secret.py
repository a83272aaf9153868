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


def test_a_secret_is_not_made_where_another_has_released(run: Run, refusal: Callable[..., str], tmp_path: Path) -> None:
    """The samples of a new secret under an old name were refused as if the data had changed, with advice that spends again."""
    path = tmp_path / "release.secret"
    Path(f"{path}.rounds").touch()
    said = refusal("secret", str(path))
    assert "release.secret.rounds notes the rounds of a secret that was called" in said
    assert "restore that secret" in said
    assert not path.exists()
