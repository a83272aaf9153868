"""`discreet send` ends with every client counted once, and says which option to mend where it cannot."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from discreet.agreement import Agreement
from discreet.cli._printing import showing_sending_progress
from discreet.tables import write_secret
from tests.client.hostile import replies, said, serving
from tests.collect.running import PATIENCE, agreed, running

Run = Callable[..., Any]
COLOURS = ["red", "green", "blue"]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A table, a secret and an agreement."""
    pl.DataFrame({"who": [*range(50)] * 2, "what": ["red", "green"] * 50}).write_parquet(tmp_path / "in.parquet")
    write_secret(tmp_path / "secret")
    agreed(tmp_path, COLOURS)
    return tmp_path


def arguments(files: Path, to: str, *more: str) -> list[str]:
    return [
        "send", str(files / "in.parquet"), "--to", to, "--client", "who", "--value", "what", "--secret", str(files / "secret"),
        "--budget", "1", *more,
    ]  # fmt: skip


@pytest.mark.slow
def test_the_summary_says_what_became_of_the_samples(run: Run, files: Path) -> None:
    (files / "gateways").write_text("token-of-a-gateway\n")
    (files / "gateways").chmod(0o600)
    with running(files, "agreement.json", "--gateways", "gateways") as collector:
        done = run(*arguments(files, collector.address, "--gateway-token-file", str(files / "gateways"), "--json"))
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        assert (told["samples"], told["counted"], told["again"], told["refused"], told["round"]) == (50, 50, 0, 0, 1)
        done = run(*arguments(files, collector.address, "--gateway-token-file", str(files / "gateways")))
        assert (done.exit_code, done.stdout) == (0, "")
        assert "50 samples sent to http://127.0.0.1:" in done.stderr
        assert "0 counted, 50 were there already, 0 refused" in done.stderr
        assert collector.get("/estimate").json["samples"] == 50


@pytest.mark.slow
def test_a_command_that_is_killed_is_run_again_and_each_client_is_counted_once(files: Path) -> None:
    clients = 5_000
    rows = {"who": range(clients), "what": [COLOURS[number % 3] for number in range(clients)]}
    pl.DataFrame(rows).write_parquet(files / "in.parquet")
    with running(files, "agreement.json") as collector:
        command = [sys.executable, "-m", "discreet", *arguments(files, collector.address, "--json")]
        first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        until = time.monotonic() + PATIENCE
        while collector.get("/estimate").json["samples"] == 0 and first.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        first.send_signal(signal.SIGKILL)
        first.communicate()
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
        told = json.loads(done.stdout)
        assert (told["samples"], told["refused"]) == (clients, 0)
        assert told["again"] > 0
        assert collector.get("/estimate").json["samples"] == clients


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--to", "http://example.org"], "--to = 'http://example.org' is not encrypted"),
        (["--to", "nowhere"], "--to = 'nowhere' is not an address"),
        (["--secret", "nowhere"], "secret file nowhere cannot be read"),
        (["--round", "2"], "round = 2 is not open: samples are taken in 1; leave it out (--round). Another round"),
        (["--epsilon", "0.5"], "more than the 0.5 allowed: --epsilon"),
        (["--agreement", "nowhere"], "agreement nowhere cannot be read"),
        (["--agreement", "0" * 64], "does not collect under agreement 000"),
        (["--gateway-token-file", "nowhere"], "--gateway-token-file nowhere cannot be read"),
        (["--gateway-token-file", "secret.open"], "chmod 600"),
        (["--ca-file", "nowhere"], "--ca-file nowhere cannot be read"),
        (["--ca-file", "in.parquet"], "--ca-file in.parquet cannot be read"),
        (["--ledger", "nowhere/books"], "cannot be made"),
        (["--key", "1"], "key = '1' is not the public key of a collector"),
        (["--value", "colour"], "'colour'"),
        (["--timeout", "0"], "timeout = 0"),
        (["--patience", "-1"], "patience = -1"),
    ],
)
def test_errors_say_what_to_mend(
    refusal: Callable[..., str], files: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], says: str
) -> None:
    monkeypatch.chdir(files)
    (files / "secret.open").write_text("x")
    (files / "secret.open").chmod(0o644)
    with serving(replies(Agreement.read(files / "agreement.json"))) as server:
        line = refusal(*arguments(files, server.address, "--patience", "0", *more))
        assert says in line
        assert [each for each in server.asked if each.method == "POST"] == []


def test_a_wait_and_a_new_ledger_are_told(run: Run, files: Path) -> None:
    counted = said(200, {"counted": 50, "again": 0, "refused": []})
    (files / "secret.ledger").mkdir(mode=0o700)
    busy = replies(Agreement.read(files / "agreement.json"), samples=[said(503, Retry_After="0"), counted])
    with serving(busy) as server:
        done = run(*arguments(files, server.address))
        server.replies["/samples"] = [said(503, Retry_After="0"), counted]
        assert run(*arguments(files, server.address), "--quiet").stderr == ""
    assert done.exit_code == 0, done.output
    made, waiting, *_ = done.stderr.splitlines()
    assert "ledger is not counted); its folder was there and empty: if it held a ledger before, stop" in made
    assert waiting.startswith(
        f"{server.address} does not take it yet: it answers 503; asking again in 1 s, for up to 600 s"
    )
    assert waiting.endswith("(round 1 is paid for: after an interruption run the same again with --round 1)")


def test_the_summary_counts_values_outside_the_domain(run: Run, files: Path) -> None:
    counted = said(200, {"counted": 2, "again": 0, "refused": []})
    rows = pl.DataFrame({"who": [1, 1, 1, 2], "what": ["Red", "Red", "green", "violet"]})
    rows.write_parquet(files / "in.parquet")
    with serving(replies(Agreement.read(files / "agreement.json"), samples=counted)) as server:
        done = run(*arguments(files, server.address))
        told = json.loads(run(*arguments(files, server.address, "--json")).stdout)
    assert done.exit_code == 0, done.output
    assert "3 values of the table outside the agreement's domain, or missing: left out, or taken as the" in done.stderr
    assert "1 client had no other values" in done.stderr
    assert (told["outside"], told["without_records"]) == (3, 1)


def test_whoever_stops_a_run_learns_the_round_that_is_paid_for(
    run: Run, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("discreet.client._collector.Collector.send_samples", stop)
    with serving(replies(Agreement.read(files / "agreement.json"))) as server:
        done = run(*arguments(files, server.address))
    assert done.exit_code != 0
    assert "run the same again with --round 1" in done.stderr


def test_a_budget_below_the_agreement_makes_no_ledger(refusal: Callable[..., str], files: Path) -> None:
    """The ledger could never pay, and the secret served it for good."""
    for more in ([], ["--ledger", str(files / "books")]):
        line = refusal(
            *arguments(
                files, "http://127.0.0.1:9", "--budget", "0.5", "--agreement", str(files / "agreement.json"), *more
            )
        )
        assert "give a larger --budget" in line
    assert sorted(path.name for path in files.iterdir()) == ["agreement.json", "in.parquet", "secret"]


def test_a_bar_shows_how_many_are_acknowledged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("COLUMNS", "80")
    with showing_sending_progress() as told:
        for done in (0, 5_000, 12_000):
            told(done, 12_000)
    said = capsys.readouterr()
    assert (said.out, "12,000 of 12,000" in said.err) == ("", True)


def test_a_collector_that_fails_half_way_is_told_with_what_to_do(refusal: Callable[..., str], files: Path) -> None:
    behaviour = replies(Agreement.read(files / "agreement.json"), samples=said(503))
    with serving(behaviour) as server:
        line = refusal(*arguments(files, server.address, "--patience", "0"))
    assert "0 of 50 samples of round 1 are acknowledged; run the same again with --round 1" in line
