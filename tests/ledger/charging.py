"""One charge to a ledger, for tests and for the processes they start (which import nothing else)."""

from discreet.accounting import BoxProfile
from discreet.ledger import Ledger

PROFILE = BoxProfile(epsilon=0.5, alpha=0.1)
ONE, OTHER = "1" * 64, "2" * 64


def charge(ledger: Ledger, number: int, sample: int = 7, agreement: str = ONE) -> int:
    """The sample of that round, drawn as `sample` if it was not drawn before."""
    return ledger.charged_sample(agreement, round=number, profile=PROFILE, draw=lambda: sample)
