"""A round is released on one input: noted in a book beside the secret, or in the memory of the process."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from discreet import DiscreetError, OptimalSampler, Simplex
from discreet.agreement import Agreement
from discreet.errors import LedgerError
from discreet.ledger._book import Rounds, forget_rounds_in_memory
from discreet.release._randomness import Question, Secret, read_secret, write_secret

ROOT = Path(__file__).parents[2]
AGREED = Agreement.of(OptimalSampler(Simplex(3), epsilon=1.0), rounds=3)
OTHER = Agreement.of(OptimalSampler(Simplex(3), epsilon=2.0), rounds=3)
QUESTION = Question(value="x")
ONE, TWO = b"1" * 32, b"2" * 32


@pytest.mark.parametrize("filed", [False, True])
def test_a_round_is_released_on_one_input(tmp_path: Path, filed: bool) -> None:
    secret = Secret(os.urandom(32), tmp_path / "state" if filed else None)
    for _ in range(2):
        Rounds(secret).note_released_round(AGREED, QUESTION, 1, ONE)
    with pytest.raises(
        DiscreetError, match=r"round 1 of agreement .* on other data in column 'x'.*round=2 \(--round 2\)"
    ):
        Rounds(secret).note_released_round(AGREED, QUESTION, 1, TWO)
    Rounds(secret).note_released_round(AGREED, QUESTION, 3, TWO)
    Rounds(secret).note_released_round(OTHER, QUESTION, 1, TWO)
    Rounds(secret).note_released_round(AGREED, Question(value="y"), 1, TWO)
    Rounds(secret).note_released_round(AGREED, Question(value="x", count="n"), 1, TWO)
    Rounds(Secret(os.urandom(32), tmp_path / "another" if filed else None)).note_released_round(
        AGREED, QUESTION, 1, TWO
    )
    with pytest.raises(DiscreetError, match=r"round=2 \(--round 2\)"):
        Rounds(secret).note_released_round(AGREED, QUESTION, 3, ONE)
    Rounds(secret).note_released_round(AGREED, QUESTION, 2, ONE)
    with pytest.raises(DiscreetError, match="all 3 rounds agreed on are released: make an agreement with more"):
        Rounds(secret).note_released_round(AGREED, QUESTION, 2, TWO)
    Rounds(secret).note_released_round(AGREED, QUESTION, 1, ONE)
    single = Agreement.of(OptimalSampler(Simplex(3), epsilon=1.0))
    Rounds(secret).note_released_round(single, QUESTION, 1, ONE)
    with pytest.raises(DiscreetError, match="the one round agreed on is released: make an agreement with more"):
        Rounds(secret).note_released_round(single, QUESTION, 1, TWO)


def test_it_lies_beside_the_secret_and_is_its_owners(tmp_path: Path) -> None:
    write_secret(tmp_path / "secret")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    before = os.umask(0)
    try:
        Rounds(read_secret(tmp_path / "link")).note_released_round(AGREED, QUESTION, 1, ONE)
    finally:
        os.umask(before)
    state = tmp_path / "secret.rounds"
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    with pytest.raises(DiscreetError, match="on other data"):
        Rounds(read_secret(tmp_path / "secret")).note_released_round(AGREED, QUESTION, 1, TWO)
    state.chmod(0o640)
    with pytest.raises(LedgerError, match="chmod 600"):
        Rounds(read_secret(tmp_path / "secret")).note_released_round(AGREED, QUESTION, 1, ONE)


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    secret = Secret(os.urandom(32), tmp_path / "state")
    Rounds(secret).note_released_round(AGREED, QUESTION, 1, ONE)
    content = (tmp_path / "state").read_bytes()
    assert content.count(ONE.hex().encode()) == 1
    (tmp_path / "state").write_bytes(content.replace(ONE.hex().encode(), TWO.hex().encode()))
    with pytest.raises(LedgerError, match="damaged"):
        Rounds(secret).note_released_round(AGREED, QUESTION, 1, TWO)
    (tmp_path / "state").write_bytes(b"")
    with pytest.raises(LedgerError, match="is empty, so it is damaged"):
        Rounds(secret).note_released_round(AGREED, QUESTION, 1, TWO)
    with pytest.raises(LedgerError, match="is empty, so it is damaged"):
        Rounds(secret).refuse_if_secret_has_ledger()
    (tmp_path / "state").write_bytes(b"something else altogether, and long enough to be looked at " * 10)
    with pytest.raises(LedgerError, match="is not a"):
        Rounds(secret).note_released_round(AGREED, QUESTION, 1, TWO)


def test_a_record_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"cannot be made: .*say where else to keep it: .*--state"):
        Rounds(Secret(os.urandom(32), tmp_path / "nowhere" / "state")).note_released_round(AGREED, QUESTION, 1, ONE)


RACE = """
import sys
from pathlib import Path
from discreet import DiscreetError
from discreet.ledger._book import Rounds
from discreet.release._randomness import Secret
from tests.ledger.test_rounds import AGREED, QUESTION
won = 0
for number in (1, 2, 3):
    try:
        Rounds(Secret(bytes(32), Path(sys.argv[1]))).note_released_round(AGREED, QUESTION, number, sys.argv[2].encode() * 32)
        won += 1
    except DiscreetError as error:
        assert "on other data" in str(error), error
print(won)
"""


@pytest.mark.slow
def test_of_processes_with_different_data_one_has_each_round(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RACE, str(tmp_path / "state")]
    racing = [subprocess.Popen([*command, name], cwd=ROOT, stdout=subprocess.PIPE, text=True) for name in "abc"]
    assert sum(int(process.communicate()[0]) for process in racing) == 3


def test_in_memory_it_is_forgotten_with_the_process() -> None:
    secret = Secret(bytes(32))
    Rounds(secret).note_released_round(AGREED, QUESTION, 1, ONE)
    with pytest.raises(DiscreetError, match="on other data"):
        Rounds(Secret(bytes(32))).note_released_round(AGREED, QUESTION, 1, TWO)
    forget_rounds_in_memory()
    Rounds(secret).note_released_round(AGREED, QUESTION, 1, TWO)
