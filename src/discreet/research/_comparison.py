"""`compare`: mechanisms, ours and one's own, side by side on the same clients; as records, tables for papers, and a picture.

A record is one mechanism at one budget under one divergence: mean, median and largest divergence of the clients from their output laws, and
the worst case over the whole family. The worst case is exact or an upper bound, which the record says. `smallest` is the minimax value of any
private sampler, where a theorem gives it. Nothing is drawn, so the same clients give the same records; no seed is needed. Clients may be
compared in several processes, a part of the budgets in each.
"""

import csv
import io
import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet._base.files import atomic_write
from discreet._base.labelled import LawLike
from discreet._base.showing import pluralise
from discreet.design import minimax_risk
from discreet.divergences import FDivergence, divergence
from discreet.errors import DiscreetError, check_choice, check_count, raise_missing_extra
from discreet.families import ContinuousFamily, FiniteFamily, Simplex, refuse_bad_laws, refuse_non_family
from discreet.mechanisms import MECHANISMS, Mechanism, OwnSampler, installed_mechanism, refuse_non_mechanism
from discreet.privacy import Pure, check_epsilon

if TYPE_CHECKING:
    from discreet.plots import Axes, Figure

Floats = NDArray[np.float64]
MechanismSource = str | Callable[..., Mechanism] | Mechanism
VALUES = ("mean", "median", "largest", "worst_case")
_BLOCK = 1 << 22
_GREEK = {
    letter: unicodedata.name(letter).rpartition(" ")[2].lower().replace("lamda", "lambda")
    for letter in "αβγδεζηθικλμνξπρστυφχψω"
} | {
    letter: unicodedata.name(letter).rpartition(" ")[2].capitalize().replace("Lamda", "Lambda")
    for letter in "ΓΔΘΛΞΠΣΦΨΩ"
}
_SIGNS = {"≤": "leq", "≥": "geq", "≠": "neq", "∞": "infty", "→": "rightarrow", "√": "surd", "‖": "Vert"}
_LATEX = str.maketrans(
    {character: "\\" + character for character in "&%$#_{}"}
    | {character: f"{{{character}}}" for character in "[]"}  # a bracket after the end of a row would be read as an argument
    | {character: f"\\{name}{{}}" for character, name in {
        "~": "textasciitilde", "^": "textasciicircum", "\\": "textbackslash", "<": "textless", ">": "textgreater", "|": "textbar",
        "`": "textasciigrave", "−": "textminus",
    }.items()}
    | {character: f"$\\{name}$" for character, name in (_GREEK | _SIGNS).items()}
    | {'"': "''"}
)  # fmt: skip


@dataclass(frozen=True)
class ComparisonRecord:
    """One mechanism at one budget, under one divergence.

    Attributes:
        mechanism: its name.
        epsilon: the budget; of another notion than pure epsilon, NaN.
        privacy: the promise in words.
        divergence: its name.
        clients: how many.
        mean: divergence of a client from its output law.
        median: of the same.
        largest: of the same.
        worst_case: over the whole family; NaN where the mechanism states none.
        exact: whether some client attains the worst case; else it is an upper bound.
        smallest: the smallest worst case of any private sampler; NaN where no theorem gives it.
    """

    mechanism: str
    epsilon: float
    privacy: str
    divergence: str
    clients: int
    mean: float
    median: float
    largest: float
    worst_case: float
    exact: bool
    smallest: float


@dataclass(frozen=True, repr=False)
class Comparison:
    """The records of a comparison, in the order of budgets, divergences and mechanisms.

    Attributes:
        records: one for each mechanism, budget and divergence.
    """

    records: tuple[ComparisonRecord, ...]

    def __repr__(self) -> str:
        """What was compared, in one line; `print` shows the means."""
        facts = (
            self.mechanisms,
            *({getattr(record, name): None for record in self.records} for name in ("privacy", "divergence")),
        )
        return f"Comparison({len(self.records)} records: {'; '.join(', '.join(fact) for fact in facts)})"

    def __str__(self) -> str:
        """The mean divergences as a table of text."""
        head = ["privacy", "divergence", *self.mechanisms]
        body = [
            [*setting, *(f"{records[name].mean:.4g}" if name in records else "" for name in self.mechanisms)]
            for setting, records in self._records_by_privacy_and_divergence().items()
        ]
        widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
        lines = [
            "   ".join([*(text.ljust(width) for text, width in zip(row[:2], widths[:2], strict=True)),
                        *(text.rjust(width) for text, width in zip(row[2:], widths[2:], strict=True))])
            for row in (head, *body)
        ]  # fmt: skip
        return "\n".join(
            [
                f"mean divergence of {pluralise(self.records[0].clients, 'client')}" if self.records else "no records",
                *lines,
            ]
        )

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The records by column, as `pandas.DataFrame` and `polars.DataFrame` take them."""
        rows = [asdict(record) for record in self.records]
        return {field.name: [row[field.name] for row in rows] for field in fields(ComparisonRecord)}

    def frame(self) -> Any:
        """The records as a polars data frame.

        Returns:
            A frame with a row for each record.

        Raises:
            MissingExtraError: where polars is not installed.
        """
        try:
            import polars as pl
        except ImportError as error:
            raise_missing_extra("cli", error)
        return pl.DataFrame(self.columns)

    def to_csv(self, path: str | Path | None = None) -> str:
        """The records as CSV, with full digits.

        Args:
            path: of a file to write as well; an existing one is replaced.

        Returns:
            The text.

        Raises:
            DiscreetError: if the file cannot be written.
        """
        text = io.StringIO()
        columns = self.columns
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        return _write_text_if_path_given(text.getvalue(), path)

    def to_latex(self, path: str | Path | None = None, *, value: str = "mean", digits: int = 3) -> str:
        """A table for a paper (package booktabs): a row for each budget and divergence, a column for each mechanism; the least is bold.

        A worst case that is an upper bound has the sign for "at most", and is never bold.

        Args:
            path: of a file to write as well; an existing one is replaced.
            value: "mean", "median", "largest" or "worst_case".
            digits: how many after the point.

        Returns:
            The text.

        Raises:
            DiscreetError: for another value, and if the file cannot be written.
        """
        check_choice("value", value, VALUES)
        from discreet.plots import divergence_label

        check_count("digits", digits, least=0, most=12)
        names = self.mechanisms
        lines = [
            "% \\usepackage{booktabs}",
            f"\\begin{{tabular}}{{ll{'r' * len(names)}}}",
            "\\toprule",
            " & ".join(["privacy", "divergence", *map(_escape_latex, names)]) + " \\\\",
            "\\midrule",
        ]
        for (privacy, name), records in self._records_by_privacy_and_divergence().items():
            numbers = {mechanism: float(getattr(record, value)) for mechanism, record in records.items()}
            bounds = {mechanism for mechanism, record in records.items() if value == "worst_case" and not record.exact}
            exact_numbers = [
                number for mechanism, number in numbers.items() if mechanism not in bounds and not math.isnan(number)
            ]
            least = min((round(number, digits) for number in exact_numbers), default=math.nan)
            cells = [
                _latex_number(numbers.get(mechanism, math.nan), digits, least, bound=mechanism in bounds)
                for mechanism in names
            ]
            lines.append(" & ".join([_escape_latex(privacy), _escape_latex(divergence_label(name)), *cells]) + " \\\\")
        return _write_text_if_path_given("\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""]), path)

    def to_pgf(
        self, path: str | Path | None = None, *, value: str = "mean", divergence: str | FDivergence | None = None
    ) -> str:
        """A picture for a paper (package pgfplots): the value against epsilon, a line for each mechanism. LaTeX sets its letters.

        Args:
            path: of a file to write as well; an existing one is replaced.
            value: "mean", "median", "largest" or "worst_case".
            divergence: which one, where there are several.

        Returns:
            The text: a `tikzpicture`, whose style the document's own `\\pgfplotsset` decides.

        Raises:
            DiscreetError: for another value or divergence, and if the file cannot be written.
        """
        check_choice("value", value, VALUES)
        from discreet.plots import divergence_label

        divergence_names = tuple(dict.fromkeys(record.divergence for record in self.records))
        requested_name = divergence.name if isinstance(divergence, FDivergence) else divergence
        divergence_name = (
            divergence_names[0] if requested_name is None and len(divergence_names) == 1 else requested_name
        )
        check_choice("divergence", divergence_name, divergence_names)
        label = _escape_latex(f"{value.replace('_', ' ')} {divergence_label(str(divergence_name))}")
        lines = [
            "% \\usepackage{pgfplots} \\pgfplotsset{compat=newest}",
            "\\begin{tikzpicture}",
            f"\\begin{{axis}}[xlabel={{$\\varepsilon$}}, ylabel={{{label}}}, ymin=0, legend pos=outer north east, legend cell align=left]",
        ]
        records = [
            record for record in self.records if record.divergence == divergence_name and not math.isnan(record.epsilon)
        ]
        for name in self.mechanisms:
            curve = [record for record in records if record.mechanism == name]
            bound = value == "worst_case" and not all(record.exact for record in curve)
            lines += _pgf_curve_source_lines(
                [(record.epsilon, float(getattr(record, value))) for record in curve],
                _escape_latex(name) + (" (upper bound)" if bound else ""),
                "+[dashed]" if bound else "",
            )
        if value == "worst_case":
            least = [
                (epsilon, smallest)
                for epsilon, smallest in {record.epsilon: record.smallest for record in records}.items()
            ]
            lines += _pgf_curve_source_lines(least, "smallest possible", "[dotted, thick]")
        return _write_text_if_path_given("\n".join([*lines, "\\end{axis}", "\\end{tikzpicture}", ""]), path)

    def plot(
        self,
        *,
        value: str = "mean",
        ax: "Axes | Sequence[Axes] | None" = None,
        title: str | None = None,
        colours: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        style: Mapping[str, Any] | None = None,
    ) -> "Figure":
        """Draw the value against epsilon, a panel for each divergence and a line for each mechanism.

        Args:
            value: "mean", "median", "largest" or "worst_case".
            ax: axes to draw on, one for each divergence; by default a new figure.
            title: above a new figure.
            colours: of mechanisms by name, in place of ours.
            labels: for the legend, by name.
            style: settings of matplotlib (rcParams) in place of ours: `{}` leaves the caller's own.

        Returns:
            The figure.

        Raises:
            DiscreetError: for another value, and for axes that are not as many as divergences.
        """
        check_choice("value", value, VALUES)
        from discreet.plots import comparison

        return comparison(self.records, value=value, ax=ax, title=title, colours=colours, labels=labels, style=style)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The names of the mechanisms, in order."""
        return tuple(dict.fromkeys(record.mechanism for record in self.records))

    def _records_by_privacy_and_divergence(self) -> dict[tuple[str, str], dict[str, ComparisonRecord]]:
        groups: dict[tuple[str, str], dict[str, ComparisonRecord]] = {}
        for record in self.records:
            groups.setdefault((record.privacy, record.divergence), {})[record.mechanism] = record
        return groups


def compare(
    family: FiniteFamily,
    clients: LawLike,
    *,
    mechanisms: Sequence[MechanismSource] = ("optimal", "linear", "mollifier"),
    epsilons: Sequence[float] = (1.0,),
    divergences: Sequence[str | FDivergence] = ("kl", "tv", "hellinger"),
) -> Comparison:
    """Compare mechanisms on the same clients.

    Args:
        family: the family of client distributions: `Simplex(...)` or `Band(...)`.
        clients: their distributions (n, k), or dicts, or a frame by label.
        mechanisms: each is a name ("optimal", or one that an installed package offers), a class or function that is called as
            `kind(family, epsilon=...)` (`functools.partial(kind, rounds=5)` sets parameters), or a `Mechanism` itself, which has a budget of
            its own. Where two have one name, their `parameters` tell them apart.
        epsilons: the budgets at which names and classes are compared.
        divergences: names, or `FDivergence` of your own.

    Returns:
        The comparison, with `.records`, `.frame()`, `.to_csv()`, `.to_latex()`, `.to_pgf()` and `.plot()`.

    Raises:
        DiscreetError: for an argument that is not a family, clients that are no distributions on it, an unknown name, or a mechanism that
            refuses the family or a budget.
    """
    refuse_non_family(family)
    if isinstance(family, ContinuousFamily):
        raise DiscreetError(
            f"family = {family!r} is continuous; compare on outcomes, or on cells: Simplex(Interval(low, high, cells=n))"
        )
    laws = np.atleast_2d(family.as_rows(clients, "clients")).reshape(-1, family.size)
    refuse_bad_laws(laws)
    if not len(laws):
        raise DiscreetError("clients is empty; give the distribution of at least one")
    functions = [divergence(f) for f in _require_nonempty_list("divergences", divergences)]
    names = [f.name for f in functions]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise DiscreetError(f"two divergences are called {duplicate!r}; give them names that differ")
    instances = _build_mechanisms_at_budgets(
        family,
        _require_nonempty_list("mechanisms", mechanisms),
        [check_epsilon(epsilon) for epsilon in _require_nonempty_list("epsilons", epsilons)],
    )
    labels = _mechanism_labels(instances)
    costs = {id(mechanism): _client_costs_by_divergence(mechanism, laws, functions) for mechanism in instances}
    records = []
    promises = dict.fromkeys(str(mechanism.privacy) for mechanism in instances)
    for promise in promises:
        for index, f in enumerate(functions):
            for mechanism in instances:
                if str(mechanism.privacy) == promise:
                    records.append(
                        _summarise_costs(
                            labels[id(mechanism)],
                            mechanism,
                            f,
                            costs[id(mechanism)][index],
                            _minimax_value_or_nan(family, mechanism, f),
                        )
                    )
    return Comparison(tuple(records))


def _require_nonempty_list(name: str, values: Any) -> list[Any]:
    """A list, not a text or a single value in its place."""
    is_list = isinstance(values, Sequence | np.ndarray) and not isinstance(values, (str, bytes))
    if not is_list or getattr(values, "ndim", 1) == 0 or not len(values):
        raise DiscreetError(f"{name} = {values!r} is not a list of at least one; pass a list")
    return list(values)


def _build_mechanisms_at_budgets(family: FiniteFamily, sources: list[Any], epsilons: list[float]) -> list[Any]:
    """Every mechanism at every budget; one that has a budget of its own, once."""
    instances: list[Any] = []
    for source in sources:
        if isinstance(source, str):
            kind: Any = MECHANISMS[source] if source in MECHANISMS else _load_mechanism_of_installed_package(source)
        elif isinstance(source, type) or (callable(source) and not isinstance(source, Mechanism)):
            kind = source
        else:
            refuse_non_mechanism(source)
            instances.append(source)
            continue
        for epsilon in epsilons:
            try:
                instance = kind(family, epsilon=epsilon)
            except TypeError as error:
                raise DiscreetError(
                    f"mechanism {source!r} cannot be called as kind(family, epsilon=...): {error}; pass a function that can, or a mechanism"
                ) from error
            refuse_non_mechanism(instance)
            instances.append(instance)
    return instances


def _load_mechanism_of_installed_package(name: str) -> Any:
    """The class of a mechanism that an installed package offers under this name; else an error that names the ways to give one."""
    try:
        return installed_mechanism(name).kind
    except DiscreetError as error:
        raise DiscreetError(
            f"mechanism = {name!r} is not one of {', '.join(MECHANISMS)}, and {error}; or pass a class of your own itself, on the command "
            "line as MODULE:CLASS"
        ) from error


def _mechanism_labels(mechanisms: list[Any]) -> dict[int, str]:
    """What each mechanism is called: its name, with its parameters where another one of that name is compared at the same budget."""
    labels = {id(mechanism): mechanism.name for mechanism in mechanisms}
    shared_names = {
        mechanism.name for mechanism in mechanisms if _has_same_label_as_another(mechanism, mechanisms, labels)
    }
    for mechanism in mechanisms:
        if mechanism.name in shared_names and isinstance(mechanism, OwnSampler) and mechanism.parameters:
            parameters = ", ".join(f"{name}={value}" for name, value in mechanism.parameters.items())
            labels[id(mechanism)] = f"{mechanism.name} ({parameters})"
    for mechanism in mechanisms:
        if _has_same_label_as_another(mechanism, mechanisms, labels):
            raise DiscreetError(
                f"two mechanisms are called {labels[id(mechanism)]!r} at {mechanism.privacy}; give them names that differ"
            )
    return labels


def _has_same_label_as_another(mechanism: Any, mechanisms: list[Any], labels: dict[int, str]) -> bool:
    """Whether another mechanism has the same label and promise."""
    key = (labels[id(mechanism)], str(mechanism.privacy))
    return sum((labels[id(other)], str(other.privacy)) == key for other in mechanisms) > 1


def _client_costs_by_divergence(mechanism: Any, laws: Floats, functions: Sequence[FDivergence]) -> list[Floats]:
    """The divergences of all clients from their output laws, for each function; outputs are computed once."""
    if mechanism.family.size != laws.shape[1]:
        raise DiscreetError(
            f"{mechanism.name!r} is on {mechanism.family.size} outcomes, and the clients on {laws.shape[1]}"
        )
    step, batches = max(1, _BLOCK // laws.shape[1]), []
    for start in range(0, len(laws), step):
        rows = laws[start : start + step]
        outputs = np.asarray(mechanism.output(rows), dtype=np.float64)
        if outputs.shape != rows.shape:
            raise DiscreetError(
                f"output of {mechanism.name!r} has shape {outputs.shape} for clients of shape {rows.shape}"
            )
        batches.append([np.atleast_1d(f(rows, outputs)) for f in functions])
    return [np.concatenate([part[index] for part in batches]) for index in range(len(functions))]


def _summarise_costs(label: str, mechanism: Any, f: FDivergence, costs: Floats, smallest: float) -> ComparisonRecord:
    risk = mechanism.risk(f) if hasattr(mechanism, "risk") else None
    privacy = mechanism.privacy
    return ComparisonRecord(
        mechanism=label,
        epsilon=privacy.epsilon if isinstance(privacy, Pure) else math.nan,
        privacy=str(privacy),
        divergence=f.name,
        clients=len(costs),
        mean=float(costs.mean()),
        median=float(np.median(costs)),
        largest=float(costs.max()),
        worst_case=math.nan if risk is None else float(risk),
        exact=risk is not None and bool(risk.attained),
        smallest=smallest,
    )


def _minimax_value_or_nan(family: FiniteFamily, mechanism: Any, f: FDivergence) -> float:
    """The minimax value, where a theorem gives it."""
    if (
        not isinstance(family, Simplex)
        and isinstance(mechanism, OwnSampler)
        and not isinstance(mechanism.privacy, Pure)
    ):
        return math.nan
    risk = minimax_risk(family, privacy=mechanism.privacy, divergence=f)
    return float(risk) if risk.tight else math.nan


def _escape_latex(text: str) -> str:
    """A text as LaTeX prints it, character by character. Accented letters stay as they are, for its own UTF-8."""
    return " ".join(text.split()).translate(_LATEX)


def _pgf_curve_source_lines(points: Sequence[tuple[float, float]], label: str, style: str) -> list[str]:
    """One line of a picture with its entry in the legend; numbers that are not finite are left out."""
    coordinates = [f"({x!r}, {y!r})" for x, y in points if math.isfinite(y)]
    if not coordinates:
        return []
    return [f"\\addplot{style} coordinates {{{' '.join(coordinates)}}};", f"\\addlegendentry{{{label}}}"]


def _latex_number(number: float, digits: int, least: float, *, bound: bool) -> str:
    if math.isnan(number):
        return "--"
    if math.isinf(number):
        return "$\\infty$"
    text = f"{number:.{digits}f}"
    if bound:
        return f"$\\leq$ {text}"
    return f"\\textbf{{{text}}}" if round(number, digits) == least else text


def _write_text_if_path_given(text: str, path: str | Path | None) -> str:
    """The text, after writing it to a new file if one is named."""
    if path is not None:
        with atomic_write(path, what="file", replace=True, folders=True) as file:
            file.write(text.encode())
    return text
