"""`discreet export`: the samples of a collection as a table that `discreet estimate` reads."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from discreet._files import check_apart
from discreet._showing import pluralise
from discreet.agreement import weights_path
from discreet.cli._printing import plain, say, write_json
from discreet.collect import export as exported
from discreet.collect import open_store
from discreet.collect._keeping import choose_agreement


def export(
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="Where samples are kept: a file, or postgresql://USER@HOST/DATABASE.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="A file that ends in .parquet, .csv or .arrow.")
    ],
    agreement: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="What the samples were released under, or 12 or more of its first digits. [default: the newest]",
            show_default=False,
        ),
    ] = None,
    round_number: Annotated[int, typer.Option("--round", metavar="R", help="Which of its rounds.")] = 1,
    write_agreement: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the agreement; Parquet and Arrow files carry it anyway."),
    ] = None,
    seal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The key of a store that is sealed (`discreet collect --seal`)."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace OUT if it is there (never the store, a link or a device).")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The samples of a collection as a table, which `discreet estimate` reads as it reads those of `discreet sample`.

    No table of a store says who said what: rows are made of the counts, in random order, and numbered; the numbers say nothing of any client.
    The service may go on meanwhile.
    """
    with closing(open_store(store, create=False, seal=seal)) as opened:
        if write_agreement is not None:
            check_apart(output, {"agreement": write_agreement, "weights": weights_path(write_agreement)})
            agreed = choose_agreement(opened.agreements(), agreement).agreement
            agreed.check_file(write_agreement)
        made = exported(opened, output, agreement=agreement, round=round_number, replace=force)
        if write_agreement is not None:
            made.agreement.write(write_agreement)
    if json:
        found = {"agreement": made.agreement.id, "round": made.round, "samples": made.samples, "output": str(output)}
        write_json({**found, **({} if write_agreement is None else {"agreement_file": str(write_agreement)})})
        return
    of = f"of round {made.round} under agreement {made.agreement.id[:12]}"
    say(f"wrote {pluralise(made.samples, 'sample')} {of} to {plain(output)}")
