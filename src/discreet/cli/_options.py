"""Options that several commands share: domain, columns, promise, goal, agreement. They have one text and one meaning.

A command declares its parameters with these types and passes their values to the functions below. These return a domain, a promise
(`--epsilon` alone, with `--delta`, or `--nu`), a mechanism, or the agreement of a file of samples. The last functions put an agreement's
promise and mechanism into words. `--for` comes first, because it decides which mechanism is right. Without `--for` and `--mechanism` the
command asks on a terminal; elsewhere it takes the population and says so in one line.

Disable core dumps in commands that read records: a dump would write all of them to disk.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import numpy as np
import typer

from discreet._base import placeholders_until_used
from discreet._base.files import read_lines, refuse_same_file
from discreet.agreement import Agreement
from discreet.domain import Domain, Labels, Numbers
from discreet.errors import DiscreetError, check_count
from discreet.families import Band, Simplex
from discreet.mechanisms import SERVED, mechanism_for
from discreet.privacy import Approximate, Privacy, Pure
from discreet.privacy.tradeoff import LARGE_EPSILON
from discreet.tables import READ, STANDARD

with placeholders_until_used(globals()):
    from discreet.cli._printing import print_json_or_text, safe_text  # loads rich, which a release does not need
    from discreet.domain import Interval
    from discreet.plots import refuse_wrong_picture_ending
    from discreet.privacy import Gaussian
    from discreet.privacy.tradeoff import large_epsilon_warning_text
    from discreet.survey import Survey, SurveySampler
    from discreet.tables import columns_as_text

if TYPE_CHECKING:
    from discreet.tables import Source

_Bars = TypeVar("_Bars")


def value_option(metavar: str, help: str, *names: str) -> Any:
    """An option that takes a value. It is called like its parameter, unless names are given."""
    return typer.Option(*names, metavar=metavar, help=help)


def flag_option(name: str, help: str, *names: str) -> Any:
    """An option without a value."""
    return typer.Option(name, *names, help=help)


def positional_argument(metavar: str | None, help: str) -> Any:
    """An argument, which has its place instead of a name."""
    return typer.Argument(metavar=metavar, help=help)


AllowLarge = Annotated[
    bool,
    flag_option("--allow-large-epsilon", f"Take an epsilon above {LARGE_EPSILON:g}, which protects almost nothing."),
]


def labels_file_option(more: str = "") -> Any:
    """The option for the file of labels; `more` says when it is needed."""
    return value_option("FILE", f"The public labels, one on each line{more}.")


def client_column_option(where: str = "") -> Any:
    """The option for the column of clients; `where` names the table if a command reads several."""
    return value_option("COLUMN", f"Column of clients{where}: texts or integers.")


def value_column_option(where: str = "") -> Any:
    """The option for the column of values."""
    return value_option("COLUMN", f"Column of values{where}: labels, integers or numbers, or lists of them.")


ClientColumn = Annotated[str, client_column_option()]
ClientColumns = Annotated[
    list[str],
    value_option(
        "COLUMN",
        "Column of clients: texts or integers. Given several times, these columns together name a client.",
    ),
]
OptionalValueColumn = Annotated[str | None, value_column_option()]
DomainFile = Annotated[Path | None, labels_file_option()]
AgreedDomainFile = Annotated[Path | None, labels_file_option(", where the agreement holds only a digest of them")]
DomainSize = Annotated[int | None, value_option("K", "Instead: the numbers 0 to K - 1.", "--domain-size", "--outcomes")]
Bounds = Annotated[tuple[float, float] | None, value_option("LO HI", "Instead: numbers in [LO, HI], cut into --cells.")]
CellCount = Annotated[int | None, value_option("N", "Number of equal cells between --bounds.")]
Other = Annotated[
    str | None,
    value_option(
        "LABEL",
        "The outcome that values outside the domain become (with --bounds: nearest). Default: an error.",
    ),
]
Nulls = Annotated[
    str,
    value_option(
        "error|drop|other",
        "Null values: an error, left out (a client without other values then has no sample, which reveals it), "
        "or taken as --other.",
    ),
]
NullClients = Annotated[str, value_option("error|drop", "Rows without a client: an error, or left out and counted.")]
CountColumn = Annotated[str | None, value_option("COLUMN", "Column with the count of each row: whole numbers.")]
WeightColumn = Annotated[
    str | None, value_option("COLUMN", "Column with the weight of each row: numbers of at least 0.")
]
ClientBudget = Annotated[
    float | None, value_option("E", "Budget of each client in the ledger, which is created if missing.")
]
OverBudget = Annotated[
    str, value_option("refuse|drop", "Clients whose budget is spent: refuse the run, or leave them out.")
]
ServedGoal = Annotated[
    str | None,
    value_option(
        "population|clients",
        "The goal: estimate the population (mechanism linear), or serve each client (optimal). Asked on a "
        "terminal; elsewhere population.",
        "--for",
    ),
]
AgreedGoal = Annotated[
    str | None,
    value_option(
        "population|clients",
        "Estimate a population (mechanism reports where they need fewer clients, else linear), or serve each client (optimal)? Asked "
        "on a terminal; elsewhere linear.",
        "--for",
    ),
]
MechanismName = Annotated[
    str | None,
    value_option(
        "linear|optimal|reports|mollifier",
        "Instead of --for, the mechanism itself. reports: for the population alone. mollifier: an older one, for comparison.",
    ),
]

TableSource = Annotated[
    str,
    positional_argument(
        "IN",
        "Parquet, Arrow, CSV, TSV or JSON lines (texts also as .gz): a file, a folder, a glob, or - for standard input.",
    ),
]
EachEpsilon = Annotated[float | None, value_option("E", "Privacy budget of each sample or report.")]
Rounds = Annotated[int, value_option("N", "Samples of each client.")]
Purpose = Annotated[str, value_option("TEXT", "What the samples are for.")]
Lower = Annotated[float | None, value_option("C1", "Distributions are at least this multiple of uniform. [default: 0]")]
Upper = Annotated[
    float | None, value_option("C2", "Distributions are at most this multiple of uniform. [default: no bound]")
]
Confidence = Annotated[float, value_option("C", "Confidence of every interval.")]
PictureFile = Annotated[Path | None, value_option("FILE", "Draw a picture: .png, .svg or .pdf.")]
JsonOutput = Annotated[bool, flag_option("--json", "Print JSON.")]
JsonSummary = Annotated[bool, flag_option("--json", "Print the summary as JSON, on standard output.")]
Quiet = Annotated[bool, flag_option("--quiet", "No progress and no summary.", "-q")]


def refuse_given_options(options: Mapping[str, Any], why: str) -> None:
    """Raise an error for the first of these options that has a value; `why` follows its name."""
    for name, value in options.items():
        if value is not None:
            raise DiscreetError(f"{name} {why}")


def refuse_estimate_options_beside(what: str, options: Mapping[str, Any]) -> None:
    """Raise an error for options of an estimate that do not go with `what`."""
    instead = f", or estimate without {what}" if what.startswith("--") else ""
    refuse_given_options(options, f"does not go with {what}; leave it out{instead}")


@dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """The options that every kind of estimate takes: of samples, reports or a survey, of groups, changes or stages.

    From `synthetic` on they are for one file of samples or reports.
    """

    source: str
    agreement: Path | None
    domain: Path | None
    statistic: list[str]
    bins: int | None
    confidence: float
    top: int | None
    plot: Path | None
    sample: str
    json: bool
    synthetic: str | None
    rows: int | None
    truth: str | None
    examples: str | None
    value: str | None
    client: str | None
    other: str | None
    nulls: str

    @property
    def report_column(self) -> str:
        """The column of reports: report, unless another one is named."""
        return "report" if self.sample == "sample" else self.sample

    def refuse_stdin_and_unusable_picture(self, others: Mapping[str, str | None]) -> None:
        """Raise an error for what cannot be read twice, and for a picture that would replace an input."""
        for name, path in {"IN": self.source, **others}.items():
            if path == STANDARD:
                raise DiscreetError(f"{name} is read twice for groups and changes; give a file instead of -")
        if self.top is not None:
            check_count("top", self.top)
        self.refuse_unusable_picture_path({"samples": self.source, "agreement": self.agreement, **others})

    def refuse_unusable_picture_path(self, inputs: Mapping[str, str | Path | None]) -> None:
        """Raise an error for a picture that cannot be written, or would replace one of the files to read."""
        if self.plot is not None:
            refuse_wrong_picture_ending(self.plot)
            refuse_same_file(self.plot, inputs, what="picture")

    def save_picture(self, draw: Callable[[Any], Any]) -> None:
        """Draw with the functions of `discreet.plots`, where a picture was asked for."""
        if self.plot is not None:
            from discreet import plots

            plots.save(draw(plots), self.plot)

    def print_estimate(self, record: dict[str, Any], blocks: list[Any]) -> None:
        """Print the record as JSON or the blocks, as it was asked."""
        pictures = [] if self.plot is None else [f"Written: {safe_text(self.plot)}"]
        print_json_or_text(record, *blocks, *pictures, json=self.json)


LINEAR_BY_DEFAULT = "linear was taken, to estimate the population; for samples as close as can be to their own clients say --for clients"
_ONCE = "give the public domain once: --domain FILE, --domain-size K, or --bounds LO HI --cells N"


def required_domain_from_options(
    file: Path | None, size: int | None, bounds: tuple[float, float] | None, cells: int | None, *, instead: str = ""
) -> Domain:
    """The domain stated by options; `instead` names alternatives in the error."""
    domain = domain_from_options(file, size, bounds, cells)
    if domain is None:
        raise DiscreetError(_ONCE + instead)
    return domain


def domain_from_options(
    file: Path | None, size: int | None = None, bounds: tuple[float, float] | None = None, cells: int | None = None
) -> Domain | None:
    """The domain stated by options, or None."""
    if [file is not None, size is not None, bounds is not None].count(True) > 1:
        raise DiscreetError(_ONCE)
    if (cells is None) != (bounds is None):
        raise DiscreetError("--bounds LO HI and --cells N go together")
    if file is not None:
        return _read_labels_file(file)
    if size is not None:
        return Numbers(size)
    if bounds is not None and cells is not None:
        return Interval(*bounds, cells=cells)
    return None


def family_from_options(domain: int | Domain, lower: float | None, upper: float | None) -> Simplex | Band:
    """Every distribution on a domain, or those within --lower (0, if left out) and --upper times the uniform one."""
    return Simplex(domain) if not lower and upper is None else band_from_options(domain, lower, upper)


def band_from_options(domain: int | Domain, lower: float | None, upper: float | None) -> Band:
    """The distributions within --lower (0, if left out) and --upper times the uniform one; every distribution without --upper."""
    simplex = Simplex(domain)
    upper_bound = float(simplex.size) if upper is None else upper
    return Band(np.ones(simplex.size), lower=lower or 0.0, upper=upper_bound, domain=simplex.domain)


def _read_labels_file(path: Path) -> Labels[str]:
    """The labels in a text file, one on each line. A table is an error: its content would be published as labels."""
    if path.suffix.lower() in READ:
        raise DiscreetError(
            f"domain file {path} is called like a table; a domain is public, a text file with one label on each line"
        )
    labels = read_lines(path, "domain", each="a label")
    if not labels:
        raise DiscreetError(f"domain file {path} is empty; each line is a label")
    try:
        return Labels(labels)
    except DiscreetError as error:
        raise DiscreetError(f"domain file {path}: {error}") from None


def prompt_for_missing_goal(goal: str | None, mechanism: str | None, *, may_ask: bool = True) -> str | None:
    """The goal of the samples, asked on a terminal if no option states it; None elsewhere."""
    if goal is not None or mechanism is not None or not (may_ask and sys.stdin.isatty() and sys.stderr.isatty()):
        return goal
    choices = " or ".join(SERVED)
    try:
        question = f"Estimate a population, or serve each client? ({choices})"
        answer: str = typer.prompt(question, default="population", err=True)
    except typer.Abort:  # Ctrl-C or Ctrl-D
        raise DiscreetError(
            "the question was not answered, and nothing was done; say --for population or --for clients"
        ) from None
    return next((name for name in SERVED if answer and name.startswith(answer.strip().lower())), answer)


def choose_mechanism_and_note(
    goal: str | None, mechanism: str | None, *, may_ask: bool = True
) -> tuple[str, str | None]:
    """The mechanism, and a note if no option chose it."""
    chosen_goal = prompt_for_missing_goal(goal, mechanism, may_ask=may_ask)
    return mechanism_for(
        chosen_goal, mechanism
    ), LINEAR_BY_DEFAULT if chosen_goal is None and mechanism is None else None


def refuse_large_epsilon(epsilon: float | None, *, allowed: bool) -> None:
    """Raise an error for an epsilon above 10, unless it is allowed."""
    doubt = None if epsilon is None or allowed else large_epsilon_warning_text(epsilon)
    if doubt is not None:
        raise DiscreetError(f"{doubt}; say --allow-large-epsilon if you mean it")


def refuse_large_total_epsilon(doubt: str | None, *, allowed: bool) -> None:
    """Raise an error if the total of all rounds is doubtful, unless it is allowed."""
    if doubt is not None and not allowed:
        raise DiscreetError(
            f"{doubt}; agree on fewer rounds or a smaller epsilon, or say --allow-large-epsilon if it is intended"
        )


Delta = Annotated[float | None, value_option("D", "Promise (epsilon, delta)-LDP in place of epsilon alone.")]
Nu = Annotated[float | None, value_option("NU", "Promise Gaussian privacy in place of epsilon.")]


def privacy_from_options(epsilon: float | None, delta: float | None, nu: float | None, *, missing: str) -> Privacy:
    """The notion of privacy that the options state; `missing` is the error if they state none."""
    if nu is not None:
        if epsilon is not None or delta is not None:
            raise DiscreetError("--nu is a promise of its own; leave out --epsilon and --delta")
        return Gaussian(nu)
    if epsilon is None:
        raise DiscreetError(missing)
    return Pure(epsilon) if not delta else Approximate(epsilon, delta=delta)


def read_agreement_of_samples(records: "Source", agreement: Path | None) -> Agreement:
    """The agreement in a file of its own, or the one that the samples carry."""
    if agreement is not None:
        return Agreement.read(agreement)
    if records.agreement is None:
        if {"discreet", "family", "mechanism"} <= records.schema.keys():
            raise DiscreetError(
                f"{records.name} is an agreement; name the file of samples, and this one as --agreement"
            )
        if not any(name.startswith(("sample", "report")) for name in records.schema):
            columns = columns_as_text(records.schema, ("sample", "report"), untyped=records.is_untyped)
            raise DiscreetError(
                f"{records.name} does not look like samples: {columns}. Records are released with `discreet sample`; for samples in a column "
                "of another name give --agreement FILE"
            )
        raise DiscreetError(
            f"{records.name} does not carry the agreement that its samples were released under; give --agreement FILE. `discreet agree` "
            "writes it again from the same domain, epsilon and mechanism: samples need not be drawn again"
        )
    return Agreement.from_json(records.agreement)


def privacy_promise_text(privacy: Privacy, epsilon: float) -> str:
    """The promised notion of privacy in words; unless it is pure epsilon, with the epsilon of its box."""
    return f"epsilon = {epsilon:g}" if isinstance(privacy, Pure) else f"{privacy} (pure epsilon = {epsilon:g})"


def mechanism_text(name: str, *, any_client: bool) -> str:
    """The mechanism in words. A band for everybody is a design: it assumes nothing about clients."""
    return f"{name} (designed reference)" if any_client else name


def budget_spending_text(agreement: Agreement) -> str:
    """The budget of each sample of a client, and of all of them together."""
    promise = privacy_promise_text(agreement.promise, agreement.epsilon)
    if agreement.rounds == 1:
        return promise
    noun = "samples" if agreement.joint is None else "rounds"
    return f"{promise} for each of {agreement.rounds:,} {noun} ({agreement.privacy_of_all_rounds} for all {agreement.rounds:,} together)"


SurveyFile = Annotated[
    Path | None,
    value_option(
        "FILE",
        "Instead of a domain: a survey file, with several columns and questions. Each client sends one report.",
        "--survey",
    ),
]


def refuse_options_beside_survey(**options: Any) -> None:
    """Raise an error for options that have no meaning with a survey."""
    flags = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    refuse_given_options(flags, "has no meaning with a survey; leave it out")


def survey_sampler_from_options(path: Path, epsilon: float | None, goal: str | None, **options: Any) -> SurveySampler:
    """The survey in a file at an epsilon; options that have no meaning beside it are refused."""
    refuse_options_beside_survey(**options)
    if goal not in (None, "population"):
        raise DiscreetError(
            f"--for {goal} has no meaning with a survey, whose reports serve the population; leave it out"
        )
    if epsilon is None:
        raise DiscreetError("--epsilon is missing: the budget of the one report that each client sends")
    return SurveySampler(Survey.read(path), epsilon=epsilon)


def round_schedule_lines(agreement: Agreement, number: int | None = None) -> Iterator[str]:
    """When the rounds of an agreement are, or the one of that number, and what a client spends in a year."""
    schedule = agreement.schedule
    if schedule is None:
        return
    first, last = (1, agreement.rounds) if number is None else (number, number)
    start, end = schedule.first_day(first), schedule.last_day(last)
    dates = f"{start}" if start == end else f"{start} to {end}"
    rounds_text = f"a round every {schedule.every}, from {dates}" if number is None else f"round {number:,} is {dates}"
    yearly_rounds = agreement.rounds_in_a_year
    yield f"{rounds_text}; at most {yearly_rounds:,} in a calendar year: {agreement.in_a_year} for a year"


def using_progress_bars_on_terminal(
    bars: Callable[[], AbstractContextManager[_Bars]], *, quiet: bool
) -> AbstractContextManager[_Bars | None]:
    """Show progress by these bars on a terminal, and nothing elsewhere."""
    return nullcontext() if quiet or not sys.stderr.isatty() else bars()


def disable_core_dumps() -> None:
    """Disable core dumps of this process from now on, where the system has them (Windows has none)."""
    try:
        resource = import_module("resource")
    except ImportError:
        return
    hard_limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard_limit))
