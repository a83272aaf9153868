"""The house in numbers, and the walks through it: `python tools/house.py` from the project's root. To look at, not to be tuned for.

The numbers are of `src/discreet`: modules, lines, imports between rooms, names. A walk is traced: a real run, in which every module of
ours that executes anything is noted, without a filter (what runs while a module is imported is not counted).
"""

import argparse
import ast
import collections
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "discreet"
DOZEN, LONGEST = 12, 550  # modules of a folder behind its door, and lines of a module
OUTSIDE = {"__init__.py", "__main__.py", "py.typed", "__pycache__"}  # not rooms
PARTICIPLE = re.compile(r"[a-z]+(ed|en|wn)|(.*_)?(told|held|found|spelt|sent|kept|built)")
POINTERS = {"each", "given", "place", "places", "whole", "one", "known", "kept"}  # and no nouns of the value
NO_PARTICIPLES = {"seed", "token", "open", "screen", "between", "often", "shutdown", "feed", "breakdown"}


def main() -> None:
    """Print the numbers, and on request the walks."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--walks", action="store_true", help="trace the five walks too (half a minute)")
    options.add_argument("--list", action="store_true", help="print the modules of each walk")
    asked = options.parse_args()
    print_numbers()
    if asked.walks or asked.list:
        for name, modules in traced_walks():
            print(f"{name}: {len(modules)} modules")
            if asked.list:
                print("    " + " ".join(modules))


def print_numbers() -> None:
    """Modules, lines, doors and names."""
    files = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in files.items()}
    short = sum(text.count("\n") <= 30 for path, text in files.items() if path.name != "__init__.py")
    rooms = sum(each.name not in OUTSIDE for each in PACKAGE.iterdir())
    lines = sum(text.count("\n") for text in files.values())
    print(f"modules {len(files)}, of them at most 30 lines {short}; lines {lines}; entries at the top {rooms}")
    folders = collections.Counter(short_name(path.parent) for path in files if not path.name.startswith("__"))
    full = {name: count for name, count in folders.items() if count > DOZEN}
    print(f"folders with more than {DOZEN} modules behind their door {len(full)} {listing(full)}")
    long = {short_name(path): text.count("\n") for path, text in files.items() if text.count("\n") > LONGEST}
    print(f"modules with more than {LONGEST} lines {len(long)} {listing(long)}")
    across, behind = imports_between_rooms(trees)
    print(f"names imported across rooms {across}, from behind another room's door {sum(behind.values())}")
    functions = collections.Counter(
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    bare = {name: count for name, count in functions.items() if is_bare_participle(name)}
    print(f"functions {sum(functions.values())}, named by a bare participle {sum(bare.values())} {listing(bare)}")
    variables = collections.Counter(
        node.id
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    vague = {name: count for name, count in variables.items() if is_bare_participle(name) or name in POINTERS}
    print(f"variables {sum(variables.values())}, that do not say what they hold {sum(vague.values())} {listing(vague)}")
    homes = collections.defaultdict(set)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name.strip("_")].add(path)
    twice = {name: len(paths) for name, paths in homes.items() if len(paths) > 1}
    print(f"class names in several modules {len(twice)} {listing(twice)}")


def short_name(path: Path) -> str:
    """A module or a folder by its path in the package."""
    return path.relative_to(PACKAGE).as_posix()


def listing(counts: dict[str, int]) -> str:
    """The most frequent of some names."""
    first = sorted(counts.items(), key=lambda item: -item[1])[:8]
    return "" if not counts else "(" + ", ".join(f"{name} {count}" for name, count in first) + ")"


def is_bare_participle(name: str) -> bool:
    """Whether a name is a participle and nothing else."""
    if name.startswith("__") and name.endswith("__"):
        return False
    plain = name.strip("_")
    return "_" not in plain and PARTICIPLE.fullmatch(plain) is not None and plain not in NO_PARTICIPLES


def imports_between_rooms(trees: dict[Path, ast.Module]) -> tuple[int, collections.Counter[str]]:
    """How many names are imported from another room, and from which modules behind a door."""
    across, behind = 0, collections.Counter[str]()
    for path, tree in trees.items():
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("discreet."):
                parts = str(node.module).split(".")[1:]
                if parts[0] != room:
                    across += len(node.names)
                    if any(part.startswith("_") for part in parts[1:]):
                        behind[".".join(parts)] += len(node.names)
    return across, behind


@contextmanager
def noted_modules(modules: dict[str, None]) -> Iterator[None]:
    """Note every module of ours in which a function runs, in the order in which they are entered."""
    prefix = str(PACKAGE) + os.sep

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(prefix):
            name = code.co_filename.removeprefix(prefix).removesuffix(".py").replace(os.sep, ".")
            modules.setdefault(name.removesuffix(".__init__"))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def traced_walks() -> Iterator[tuple[str, list[str]]]:
    """The five walks, each done once before it is traced, so that imports and start-up are over."""
    walks: dict[str, Callable[[], Any]] = {
        "a record (discreet sample)": sample_table,
        "a sample over HTTP (client to collector)": send_sample,
        "a design (dc.design)": make_design,
        "a token (torch.release)": release_token,
        "a density (OptimalSampler.release)": release_density,
    }
    before = Path.cwd()
    for name, walk in walks.items():
        modules: dict[str, None] = {}
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                walk()
                with noted_modules(modules):
                    walk()
            finally:
                os.chdir(before)
        yield name, list(modules)


def sample_table() -> None:
    """One private sample for each client of a small file."""
    import polars as pl
    from typer.testing import CliRunner

    from discreet.cli._app import app

    rows = range(400)
    table = pl.DataFrame({"who": [f"c{row % 50}" for row in rows], "what": ["abc"[row % 3] for row in rows]})
    table.write_parquet("in.parquet")
    Path("labels.txt").write_text("a\nb\nc\n")
    for path in Path().glob("out.parquet*"):
        path.unlink()
    asked = "sample in.parquet --client who --value what --domain labels.txt --epsilon 1 -o out.parquet"
    CliRunner().invoke(app, asked.split(), catch_exceptions=False)


def send_sample() -> None:
    """A device sends one sample to a collector in this process."""
    import asyncio
    import socket

    import uvicorn

    import discreet as dc
    from discreet.client import Client
    from discreet.collect import open_store, service

    for path in Path().iterdir():
        with suppress(OSError):
            path.unlink()
    agreement = dc.Agreement.of(dc.LinearSampler(dc.Simplex(["a", "b", "c"]), epsilon=1.0))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with closing(open_store("samples.db")) as store:
        store.add(agreement)
        server = uvicorn.Server(uvicorn.Config(service(store), host="127.0.0.1", port=port, log_level="error"))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
        thread.start()
        try:
            while not server.started:
                pass
            Client(f"http://127.0.0.1:{port}", ledger="ledger", budget=1.0).send(records=["a"])
        finally:
            server.should_exit = True
            thread.join()


def make_design() -> None:
    """The best sampler for a few clients."""
    import discreet as dc

    dc.design(dc.Simplex(3), epsilon=1.0, clients=[[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])


def release_token() -> None:
    """A private sample of a row of logits."""
    import torch

    from discreet.torch import release

    release(logits=torch.tensor([[0.0, 1.0, 2.0]]), epsilon=1.0)


def release_density() -> None:
    """A private point for a client that holds a normal density."""
    from scipy import stats

    import discreet as dc

    dc.OptimalSampler(dc.GaussianMixtures(), epsilon=1.0).release(stats.norm(0.5, 1.0))


if __name__ == "__main__":
    main()
