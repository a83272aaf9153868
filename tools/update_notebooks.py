"""Run the notebooks of docs/ and store them with their outputs: `make notebooks`, or `python tools/update_notebooks.py [NOTEBOOK ...]`.

Cells run in order in one process and an empty folder, as `tests/test_documentation.py` runs them. A cell's outputs are what it prints, the
value of its last expression and its open figures, in Jupyter's format. No Jupyter is needed. An error stops the run, and nothing is written.

A cell tagged `random` draws from the operating system's generator. Its outputs differ in every run; the test compares only their kinds.
"""

import ast
import base64
import io
import json
import os
import pprint
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOTS_PER_INCH = 90


def notebook_paths() -> list[Path]:
    """Every notebook of the documentation."""
    return sorted((ROOT / "docs").rglob("*.ipynb"))


def read_notebook(path: Path) -> dict[str, Any]:
    """A notebook as Jupyter's format has it."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells that run, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cells(notebook: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The outputs of each code cell, all run in one namespace and in the present folder."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for count, cell in enumerate(code_cells(notebook), start=1):
        yield _run_cell("".join(cell["source"]), namespace, count)


def _run_cell(source: str, namespace: dict[str, Any], count: int) -> list[dict[str, Any]]:
    body = ast.parse(source).body
    last = body[-1] if body and not source.rstrip().endswith(";") else None
    value, printed = None, io.StringIO()
    with redirect_stdout(printed):
        statements = body[:-1] if isinstance(last, ast.Expr) else body
        exec(compile(ast.Module(statements, []), f"cell {count}", "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        shown = {"data": _shown(value), "execution_count": count, "metadata": {}, "output_type": "execute_result"}
        outputs.append(shown)
    return outputs + [{"data": data, "metadata": {}, "output_type": "display_data"} for data in _pictures()]


def _shown(value: object) -> dict[str, Any]:
    """A value as text and, where it has one, as a small table."""
    nested = isinstance(value, tuple | list | dict)
    text = pprint.pformat(value, width=110, sort_dicts=False) if nested else repr(value)
    found = {"text/plain": text.splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        found = {"text/html": value._repr_html_().splitlines(keepends=True), **found}
    return found


def _pictures() -> Iterator[dict[str, Any]]:
    """The open figures, which are closed; nothing where no cell has drawn."""
    if "matplotlib.pyplot" not in sys.modules:
        return
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        figure, content = pyplot.figure(number), io.BytesIO()
        figure.savefig(content, format="png", dpi=DOTS_PER_INCH, bbox_inches="tight", metadata={"Software": None})
        width, height = figure.get_size_inches()
        yield {
            "image/png": base64.b64encode(content.getvalue()).decode(),
            "text/plain": [f"<Figure of {width:g} by {height:g} inches>"],
        }
    pyplot.close("all")


def store_outputs(path: Path) -> None:
    """Run a notebook in an empty folder and write it with its outputs."""
    notebook = read_notebook(path)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        made = list(run_cells(notebook))
    for count, (cell, outputs) in enumerate(zip(code_cells(notebook), made, strict=True), start=1):
        cell.update(execution_count=count, outputs=outputs)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def main() -> None:
    os.environ["MPLBACKEND"] = "agg"
    for path in [Path(name).resolve() for name in sys.argv[1:]] or notebook_paths():
        store_outputs(path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
