"""Tokens: whoever holds one speaks once, whoever holds none does not, and gateways name their clients themselves."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.collect._enrolment import Enrolment, read_tokens, write_tokens
from discreet.collect._problems import Problem
from discreet.errors import DiscreetError
from tests.cli.conftest import Run, refusal, run
from tests.collect.running import agreed, one, running

__all__ = ["refusal", "run"]


def test_tokens_are_private_and_all_different(tmp_path: Path) -> None:
    path = tmp_path / "tokens.txt"
    write_tokens(path, 500)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(set(read_tokens(path))) == 500
    with pytest.raises(DiscreetError, match="exists already"):
        write_tokens(path, 1)
    os.chmod(path, 0o644)
    with pytest.raises(DiscreetError, match="chmod 600"):
        read_tokens(path)


@pytest.mark.parametrize(
    "content", [b"", b"short\n", b"\xff" * 20, b"a" * 20 + b"\n" + b"a" * 20, b"a" * 201, b"a" * 16 + b"\x00"]
)
def test_what_are_no_tokens_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokens.txt"
    path.write_bytes(content)
    os.chmod(path, 0o600)
    with pytest.raises(DiscreetError, match="token"):
        read_tokens(path)


def test_a_folder_or_nothing_is_no_file_of_tokens(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "\0"):
        with pytest.raises(DiscreetError, match="file of tokens"):
            read_tokens(path)


def test_without_lists_everybody_speaks_and_no_header_matters() -> None:
    everybody = Enrolment.of()
    assert not everybody.needed
    assert everybody.names_freely([])
    assert everybody.names_freely(["Basic abc"])
    assert everybody.names_freely(["Bearer abc"])


def test_a_token_in_both_lists_is_refused(tmp_path: Path, refusal: Callable[..., str]) -> None:
    """Whoever was handed it as a client could stuff the ballot as a gateway."""
    agreed(tmp_path)
    tokens = str(tmp_path / "tokens.txt")
    write_tokens(tokens, 2)
    where = [str(tmp_path / "agreement.json"), "--port", "0", "--store", str(tmp_path / "samples.db")]
    said = refusal("collect", *where, "--tokens", tokens, "--gateways", tokens)
    assert "tokens of clients and of gateways share 2 tokens" in said
    assert not (tmp_path / "samples.db").exists()


def test_a_token_of_a_gateway_is_no_client_and_a_client_no_gateway() -> None:
    enrolled = Enrolment.of(["client-token-0001"], ["gateway-token-001"])
    assert enrolled.needed
    assert enrolled.knows("client-token-0001")
    assert not enrolled.knows("gateway-token-001")
    assert not enrolled.names_freely([])
    assert not enrolled.names_freely(["Basic gateway-token-001"])
    assert enrolled.names_freely(["bearer gateway-token-001"])
    for said in ("Bearer client-token-0001", "Bearer ", "Bearer é", "Bearer gateway-token-0010"):
        with pytest.raises(Problem) as refused:
            enrolled.names_freely([said])
        assert refused.value.status == 401
        assert refused.value.headers == {"WWW-Authenticate": "Bearer"}


def test_where_there_are_gateways_alone_nobody_else_speaks() -> None:
    gateways = Enrolment.of(None, ["gateway-token-001"])
    assert gateways.needed
    assert not gateways.names_freely([])
    assert not gateways.knows("anybody-at-all-001")


def test_a_service_takes_samples_of_those_who_were_enrolled(tmp_path: Path, run: Run) -> None:
    agreement = agreed(tmp_path)
    for name in ("tokens.txt", "gateways.txt"):
        assert run("enrol", "2", "-o", str(tmp_path / name), "--json").exit_code == 0
    first, second = read_tokens(tmp_path / "tokens.txt")
    gateway, _ = read_tokens(tmp_path / "gateways.txt")
    with running(tmp_path, "agreement.json", "--tokens", "tokens.txt", "--gateways", "gateways.txt") as collector:
        assert collector.get("/collection").json["enrolment"] is True
        assert collector.send(one(agreement, first, 0)).status == 200
        assert collector.send(one(agreement, first, 0)).json["again"] == 1
        assert collector.send(one(agreement, first, 0, key="other")).status == 409
        stranger = collector.send(one(agreement, "somebody", 0))
        assert (stranger.status, "somebody" in stranger.json["error"]) == (403, False)
        rows = [{"client": name, "key": "k", "sample": 1} for name in (second, "somebody")]
        batch = {"agreement": agreement.id, "round": 1, "samples": rows}
        assert collector.send(batch).json["error"].startswith("samples[1].client ")
        assert collector.get("/estimate").json["samples"] == 1
        assert collector.send(batch, Authorization=f"Bearer {first}").status == 401
        assert collector.send(batch, Authorization=f"Bearer {gateway}").json["counted"] == 2
        assert collector.said == ""


def test_the_command_makes_tokens_and_never_prints_them(tmp_path: Path, run: Run, refusal: Callable[..., str]) -> None:
    path = tmp_path / "tokens.txt"
    shown = run("enrol", "3", "-o", str(path)).stdout
    assert not any(token in shown for token in read_tokens(path))
    refusal("enrol", "3", "-o", str(path))
    refusal("enrol", "0", "-o", str(tmp_path / "none.txt"))
