"""Two bugs that real libraries shipped, caught from outside: each is installed in a folder of its own and run from there."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.audit import BlackBoxAudit, black_box_audit
from tests.needed import cannot_run

OPENDP = """
import sys
import opendp.prelude as dp
assert "{folder}" in dp.__file__, dp.__file__
dp.enable_features("contrib")
private = dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=0.8)
sys.stderr.write(str(private.map(1)))
sys.stdout.buffer.write(b"".join(private(bytes([{value}])) for _ in range({count})))
"""

PURE_LDP = """
import sys, types, importlib.util
package = importlib.util.find_spec("pure_ldp").submodule_search_locations[0]
assert package.startswith("{folder}"), package
oracles = types.ModuleType("pure_ldp.frequency_oracles")  # its __init__ imports every oracle and all they depend on
oracles.__path__ = [package + "/frequency_oracles"]
sys.modules["pure_ldp.frequency_oracles"] = oracles
from pure_ldp.frequency_oracles.unary_encoding.ue_client import UEClient
import numpy as np
client = UEClient(0.5, 4, index_mapper=lambda item: item)
np.random.seed({seed})
sys.stdout.buffer.write(np.array([client.privatise({value}) for _ in range({count})], dtype=np.uint8).tobytes())
"""


@pytest.fixture
def throw_away() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def installed(folder: Path, *requirements: str) -> Path:
    """The package alone in a new folder; where it cannot be had the test says why, and fails if CI is set."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--target",
        str(folder),
        *requirements,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"pip ended with {done.returncode}"]
        cannot_run(f"{requirements[0]} cannot be installed here: {said[-1]}")
    return folder


def run_there(program: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(folder)}, capture_output=True, check=True
    )


@pytest.mark.slow
@pytest.mark.parametrize(("said", "ends"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_what_cannot_be_installed_is_not_passed_over_in_silence(
    throw_away: Path, monkeypatch: pytest.MonkeyPatch, said: str, ends: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", said)
    with pytest.raises(ends, match="no-such-package cannot be installed here: ERROR"):
        installed(throw_away, "no-such-package", "--no-index")


@pytest.mark.soak
def test_opendp_left_the_last_bit_bare(throw_away: Path) -> None:
    folder = installed(throw_away, "opendp==0.14.1")
    claims = []

    def mechanism(value: int, n: int) -> Any:
        done = run_there(OPENDP.format(folder=folder, value=value, count=n), folder)
        claims.append(float(done.stderr))
        return np.unpackbits(np.frombuffer(done.stdout, dtype=np.uint8)[:, None], axis=1)

    mechanism(0, 1)
    found = black_box_audit(mechanism, [0b00000000, 0b10000000], epsilon=claims[0], draws=2_000)
    assert claims[0] == pytest.approx(0.811, abs=0.001)
    assert_caught(found, "sample[0]")
    assert found.empirical_epsilon_lower_bound > 4.0


@pytest.mark.soak
def test_pure_ldp_loses_more_than_it_claims(throw_away: Path) -> None:
    folder = installed(throw_away, "pure-ldp==1.1.2", "xxhash", "bitarray")
    calls = iter(range(100))

    def mechanism(value: int, n: int) -> Any:
        done = run_there(PURE_LDP.format(folder=folder, value=value, count=n, seed=next(calls)), folder)
        return np.frombuffer(done.stdout, dtype=np.uint8).reshape(n, 4)

    found = black_box_audit(mechanism, [0, 1], epsilon=0.5, draws=40_000)
    assert_caught(found, "sample[0]", "sample[1]")
    assert 1.2 < found.empirical_epsilon_lower_bound < 1.38


def assert_caught(found: BlackBoxAudit, *named: str) -> None:
    assert found.is_refuted
    event = found.events[0].description
    assert all(name in event for name in named) or event.startswith("sample = ["), event
