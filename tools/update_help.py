"""Rewrite the help texts shown in docs/reference/cli.md with what the commands print: `python tools/update_help.py`."""

import os
import re
from pathlib import Path

from typer.testing import CliRunner

from discreet.cli._app import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
BLOCK = re.compile(r"(```console\n\$ discreet([^\n]*?) --help\n)(.*?)(```)", re.DOTALL)


def main() -> None:
    os.environ["COLUMNS"] = "80"

    def with_help(block: re.Match[str]) -> str:
        shown = CliRunner().invoke(app, [*block[2].split(), "--help"], prog_name="discreet")
        return block[1] + shown.output + block[4]

    PAGE.write_text(BLOCK.sub(with_help, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
