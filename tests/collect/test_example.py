"""The example of a collection for real (examples/collector): its files fit each other, the command line and the service's limits."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from discreet.cli._app import app
from discreet.client._protocol import read_collector_key
from discreet.collect._counting import read_seal_file
from discreet.collect._requests import MOST_BODY
from tests.needed import needed_module

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "collector"


@pytest.fixture(scope="module")
def compose() -> Any:
    text = (FOLDER / "compose.yaml").read_text()
    return needed_module("yaml", "pip install --group dev").safe_load(text)


def parsed(name: str, arguments: list[str]) -> dict[str, Any]:
    """What the command line makes of arguments; one that it does not know is an error."""
    group: Any = get_command(app)
    found: dict[str, Any] = group.get_command(None, name).make_context(name, arguments).params
    return found


def test_the_collector_starts_with_options_that_it_has(compose: Any) -> None:
    command = [re.sub(r"\$\{DOMAIN:-(\w+)\}", r"\1", part) for part in compose["services"]["collector"]["command"]]
    found = parsed("collect", command)
    assert found["store"].startswith("postgresql://collector@database/collector")
    assert (found["host"], found["port"], found["allow_host"]) == ("0.0.0.0", 8000, ["localhost"])
    assert (str(found["seal"]), str(found["key"]), found["address"]) == (
        "/tmp/seal",
        "/tmp/collector-key",
        ["https://localhost"],
    )
    (agreement,) = found["agreements"]
    assert any(volume.split(":")[1] == str(agreement) for volume in compose["services"]["collector"]["volumes"])


def test_the_agreement_of_the_example_is_made_by_a_command_that_there_is() -> None:
    (line,) = re.findall(r"discreet (agree .*)", (FOLDER / "compose.yaml").read_text())
    name, *arguments = shlex.split(line)
    assert parsed(name, arguments)["purpose"] == "favourite season"


def test_the_proxy_leads_to_the_collector_and_has_its_limits(compose: Any) -> None:
    caddy = (FOLDER / "Caddyfile").read_text()
    assert "reverse_proxy collector:8000" in caddy
    assert f"max_size {MOST_BODY >> 20}MiB" in caddy
    assert caddy.count("{") == caddy.count("}")
    assert "log" not in re.sub(r"#.*", "", caddy)
    networks = {name: set(part["networks"]) for name, part in compose["services"].items()}
    assert networks == {"proxy": {"outside", "inside"}, "collector": {"inside"}, "database": {"inside"}}
    assert compose["networks"]["inside"] == {"internal": True}
    assert [name for name, part in compose["services"].items() if "ports" in part] == ["proxy"]


def test_every_file_that_is_named_is_there_or_made_first(compose: Any) -> None:
    made = {"agreement.json", "database-password.txt", "seal.txt", "collector-key.txt"}
    for part in compose["services"].values():
        for volume in part.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("./"):
                assert source[2:] in made or (FOLDER / source).is_file()
            else:
                assert source in compose["volumes"]
    build = compose["services"]["collector"]["build"]
    context = (FOLDER / build["context"]).resolve()
    recipe = (context / build["dockerfile"]).read_text()
    assert context == ROOT
    for source in re.findall(r"^COPY (\S+)", recipe, re.MULTILINE):
        assert (context / source).exists()
    assert "discreet[collect]" in recipe
    assert {secret["file"][2:] for secret in compose["secrets"].values()} <= made
    assert 'exec discreet collect "$@"' in (FOLDER / "start.sh").read_text()


def test_keys_are_made_and_copied_as_the_collector_reads_them(tmp_path: Path) -> None:
    text, start = (FOLDER / "compose.yaml").read_text(), (FOLDER / "start.sh").read_text()
    for name, read in (("seal", read_seal_file), ("collector-key", read_collector_key)):
        (line,) = re.findall(rf'echo "(\S+) \$\(openssl rand -hex 32\)" > {name}\.txt', text)
        path = tmp_path / name
        path.write_text(f"{line} {'ab' * 32}\n")
        path.chmod(0o600)
        assert read(path) is not None
        assert f"cat /run/secrets/{name} > /tmp/{name}\n" in start
    assert start.index("umask 077") < start.index("cat /run/secrets/seal")
