"""A client's ledger pays for reports: once for each question, with the same report ever after."""

from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.errors import BudgetError, DiscreetError
from discreet.ledger import Budget, Ledger


def test_a_report_is_paid_for_once_and_given_again(tmp_path: Path) -> None:
    """Masks of 64 bits come back whole from the file."""
    sampler = dc.ReportSampler(dc.Simplex([f"c{n}" for n in range(64)]), epsilon=0.5)
    agreed = dc.Agreement.of(sampler, rounds=3)
    ledger = Ledger.create(tmp_path / "a.ledger", Budget(epsilon=1.0))
    first = ledger.release(sampler, {"c3": 1.0}, agreement=agreed)
    assert sampler.check_reports([first]).tolist() == [first]
    again = Ledger(tmp_path / "a.ledger")
    assert again.release(sampler, {"c60": 1.0}, agreement=agreed) == first
    assert again.released_sample(sampler, agreement=agreed) == first
    assert again.spent().epsilon == pytest.approx(0.5)
    ledger.release(sampler, {"c3": 1.0}, agreement=agreed, round=2)
    with pytest.raises(BudgetError, match="nothing was charged"):
        ledger.release(sampler, {"c3": 1.0}, agreement=agreed, round=3)
    assert len(ledger.entries()) == 2


def test_what_cannot_be_reported_is_not_charged(tmp_path: Path) -> None:
    sampler = dc.ReportSampler(dc.Simplex(104), epsilon=1.0)
    agreed = dc.Agreement.of(sampler)
    ledger = Ledger.create(tmp_path / "a.ledger", Budget(epsilon=1.0))
    with pytest.raises(DiscreetError, match="2 laws; a ledger is one client's"):
        ledger.release(sampler, np.eye(104)[:2], agreement=agreed)
    with pytest.raises(DiscreetError):
        ledger.release(sampler, np.zeros(104), agreement=agreed)
    with pytest.raises(DiscreetError, match="belongs to agreement"):
        ledger.release(dc.ReportSampler(dc.Simplex(104), epsilon=0.5), np.eye(104)[0], agreement=agreed)
    assert ledger.spent().epsilon == 0.0
