"""Options that several commands share, with the same words and the same meaning in each: domain, columns, promise, goal, agreement.

A command declares its parameters with these types and passes their values to the functions below, which return a domain, a promise
(`--epsilon` alone, with `--delta`, or `--nu`), a mechanism, or the agreement that a file of samples was released under. The last
functions put an agreement's promise and mechanism into words. `--for` is the first question, because it decides which mechanism is
right. Somebody who gives neither `--for` nor a mechanism is asked on a terminal; elsewhere the population is meant, and one line says so.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet._base.files import read_lines
from discreet.agreement import Agreement
from discreet.domain import Domain, Interval, Labels, Numbers
from discreet.errors import DiscreetError
from discreet.mechanisms import SERVED, mechanism_for
from discreet.privacy import Approximate, Gaussian, Privacy, Pure
from discreet.privacy.tradeoff import LARGE_EPSILON, large_epsilon_warning
from discreet.tables import READ

if TYPE_CHECKING:
    from discreet.tables import Source

AllowLarge = Annotated[
    bool,
    typer.Option(
        "--allow-large-epsilon", help=f"Take an epsilon above {LARGE_EPSILON:g}, which hides next to nothing."
    ),
]


def labels_option(more: str = "") -> Any:
    """The file of labels; `more` says when it is needed."""
    return typer.Option("--domain", metavar="FILE", help=f"The public labels, one on each line{more}.")


def client_option(where: str = "") -> Any:
    """The column that says who; `where`: in which table, if a command reads several."""
    return typer.Option("--client", metavar="COLUMN", help=f"Who{where}: texts or integers.")


def value_option(where: str = "") -> Any:
    """The column that says what."""
    return typer.Option(
        "--value", metavar="COLUMN", help=f"What{where}: labels, integers or numbers, or lists of them."
    )


ClientColumn = Annotated[str, client_option()]
ValueColumn = Annotated[str, value_option()]
DomainFile = Annotated[Path | None, labels_option()]
DomainSize = Annotated[
    int | None,
    typer.Option("--domain-size", "--outcomes", metavar="K", help="Instead: the numbers 0 to K - 1."),
]
Bounds = Annotated[
    tuple[float, float] | None,
    typer.Option("--bounds", metavar="LO HI", help="Instead: numbers in [LO, HI], cut into --cells."),
]
CellCount = Annotated[int | None, typer.Option("--cells", metavar="N", help="Number of equal cells between --bounds.")]
Other = Annotated[
    str | None,
    typer.Option(
        "--other",
        metavar="LABEL",
        help="The outcome that values outside the domain become (with --bounds: nearest). Default: an error.",
    ),
]
Nulls = Annotated[
    str,
    typer.Option(
        "--nulls",
        metavar="error|drop|other",
        help="Null values: refuse them, leave them out (a client with nothing else is then absent, which tells that), or "
        "take them as --other.",
    ),
]
CountColumn = Annotated[
    str | None, typer.Option("--count", metavar="COLUMN", help="How often each row counts: whole numbers.")
]
WeightColumn = Annotated[
    str | None, typer.Option("--weight", metavar="COLUMN", help="Or how much: any numbers of at least 0.")
]
ClientBudget = Annotated[
    float | None,
    typer.Option(
        "--budget", metavar="E", help="What each client may spend in the ledger, which is made if it is not there."
    ),
]
OverBudget = Annotated[
    str,
    typer.Option(
        "--over-budget",
        metavar="refuse|drop",
        help="Clients that cannot pay: refuse the run, or leave them out.",
    ),
]
ServedGoal = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="population|clients",
        help="Estimate a population (mechanism linear), or serve each client (optimal)? Asked on a terminal; elsewhere population.",
    ),
]
AgreedGoal = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="population|clients",
        help="Estimate a population (mechanism reports where they need fewer clients, else linear), or serve each client (optimal)? Asked "
        "on a terminal; elsewhere linear.",
    ),
]
MechanismName = Annotated[
    str | None,
    typer.Option(
        metavar="linear|optimal|reports|mollifier",
        help="Instead of --for, the mechanism itself. reports: for the population alone. mollifier: an older one, for comparison.",
    ),
]

LINEAR_BY_DEFAULT = "linear was taken, to estimate the population; for samples as close as can be to their own clients say --for clients"
_ONCE = "give the public domain once: --domain FILE, --domain-size K, or --bounds LO HI --cells N"


def require_domain(
    file: Path | None, size: int | None, bounds: tuple[float, float] | None, cells: int | None, *, instead: str = ""
) -> Domain:
    """The domain that options state, one way or another; `instead`: what else would do."""
    given = stated_domain(file, size, bounds, cells)
    if given is None:
        raise DiscreetError(_ONCE + instead)
    return given


def stated_domain(
    file: Path | None, size: int | None, bounds: tuple[float, float] | None, cells: int | None
) -> Domain | None:
    """The domain that options state; None where none does."""
    if [file is not None, size is not None, bounds is not None].count(True) > 1:
        raise DiscreetError(_ONCE)
    if (cells is None) != (bounds is None):
        raise DiscreetError("--bounds LO HI and --cells N go together")
    if file is not None:
        return Labels(_read_labels(file))
    if size is not None:
        return Numbers(size)
    if bounds is not None and cells is not None:
        return Interval(*bounds, cells=cells)
    return None


def _read_labels(path: Path) -> tuple[str, ...]:
    """The labels in a text file, one on each line. A table is refused: it would publish what it holds as labels."""
    if path.suffix.lower() in READ:
        raise DiscreetError(
            f"domain file {path} is called like a table; a domain is public, a text file with one label on each line"
        )
    return tuple(read_lines(path, "domain", each="a label"))


def ask_whom_to_serve(serve: str | None, mechanism: str | None, *, may_ask: bool = True) -> str | None:
    """Whom samples are to serve, asked for where nothing says it and somebody is there to answer; None where nobody is."""
    if serve is not None or mechanism is not None or not (may_ask and sys.stdin.isatty() and sys.stderr.isatty()):
        return serve
    whole = " or ".join(SERVED)
    said: str = typer.prompt(f"Estimate a population, or serve each client? ({whole})", default="population", err=True)
    return next((name for name in SERVED if said and name.startswith(said.strip().lower())), said)


def choose_mechanism(serve: str | None, mechanism: str | None, *, may_ask: bool = True) -> tuple[str, str | None]:
    """The mechanism, and what to tell about it where nobody chose it."""
    whom = ask_whom_to_serve(serve, mechanism, may_ask=may_ask)
    return mechanism_for(whom, mechanism), LINEAR_BY_DEFAULT if whom is None and mechanism is None else None


def refuse_large(epsilon: float | None, *, allowed: bool) -> None:
    """Refuse an epsilon above 10, which is too large to be meant, unless somebody says that it is."""
    doubt = None if epsilon is None or allowed else large_epsilon_warning(epsilon)
    if doubt is not None:
        raise DiscreetError(f"{doubt}; say --allow-large-epsilon if it is")


def refuse_large_together(doubt: str | None, *, allowed: bool) -> None:
    """Refuse rounds of which it is doubted that they are meant, since they are too much together, unless somebody says that they are."""
    if doubt is not None and not allowed:
        raise DiscreetError(
            f"{doubt}; agree on fewer rounds or a smaller epsilon, or say --allow-large-epsilon if it is meant"
        )


Delta = Annotated[
    float | None, typer.Option(metavar="D", help="Promise (epsilon, delta)-LDP in place of epsilon alone.")
]
Nu = Annotated[float | None, typer.Option(metavar="NU", help="Promise Gaussian privacy in place of epsilon.")]


def promise(epsilon: float | None, delta: float | None, nu: float | None, *, missing: str) -> Privacy:
    """What the options promise; `missing` is said where they promise nothing."""
    if nu is not None:
        if epsilon is not None or delta is not None:
            raise DiscreetError("--nu is a promise by itself; leave out --epsilon and --delta")
        return Gaussian(nu)
    if epsilon is None:
        raise DiscreetError(missing)
    return Pure(epsilon) if not delta else Approximate(epsilon, delta=delta)


def agreement_of(records: "Source", agreement: Path | None) -> Agreement:
    """The agreement of a file of its own, or the one that the samples carry."""
    if agreement is not None:
        return Agreement.read(agreement)
    if records.agreement is None:
        raise DiscreetError(
            f"{records.name} does not carry the agreement that its samples were released under; give --agreement FILE (as `discreet agree` "
            "or `discreet sample --write-agreement` wrote it)"
        )
    return Agreement.from_json(records.agreement)


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
