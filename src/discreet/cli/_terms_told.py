"""What is promised and by which mechanism, as every command says it of an agreement or of its sampler."""

from discreet.agreement import Agreement
from discreet.privacy import Privacy, Pure


def promise_text(privacy: Privacy, epsilon: float) -> str:
    """The notion that is promised; where it is not pure epsilon, with the epsilon of the box that keeps it."""
    return f"epsilon = {epsilon:g}" if isinstance(privacy, Pure) else f"{privacy} (pure epsilon = {epsilon:g})"


def mechanism_text(name: str, *, everybody: bool) -> str:
    """The mechanism; a band that serves everybody is no claim about clients but a choice of the reference: a design."""
    return f"{name} (designed reference)" if everybody else name


def spending_text(agreement: Agreement) -> str:
    """What each sample of a client spends, and all of them together."""
    each = promise_text(agreement.promise, agreement.epsilon)
    if agreement.rounds == 1:
        return each
    what = "samples" if agreement.joint is None else "rounds"
    return (
        f"{each} for each of {agreement.rounds:,} {what} ({agreement.together} for all {agreement.rounds:,} together)"
    )
