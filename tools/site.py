"""What the site holds beside the pages of docs/, as hooks of MkDocs: the README and its like, notebooks, the explorer, and the API.

Pages lead to files of the repository that are no pages (sources, tests): there the words stay and the link goes. Everything else is a
link that MkDocs checks, and in its strict mode a broken one fails the build.
"""

import base64
import importlib
import json
import re
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from mkdocs.structure.files import File, Files

import discreet
from discreet.errors import MissingExtraError
from discreet.research._explorer import explorer_page

ROOT = Path(__file__).parents[1]
OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./)*(?:src|tests|tools|benchmarks|clients|LICENSE)[^)]*\)")
NAMED_BY_FILE = re.compile(r"\[([\w-]+\.(?:md|ipynb))\]\(")
KINDS = (("tutorials", "Tutorials"), ("how-to", "How-to"), ("explanation", "Explanation"), ("reference", "Reference"))
_EXPLORER = """---
hide: [navigation, toc]
---
<h1 hidden>What privacy costs</h1>
<iframe src="explore.html" title="The explorer" style="width:100%;height:85vh;border:0"></iframe>
"""
_SHIM = "assets/search-from-files.js"
_SEARCH_FROM_FILES = """// Browsers forbid workers on pages from files: there the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  self.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      frame.answer = (data) => this.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) }));
      const source = new URL(address, location).href.replaceAll('"', "%22");
      frame.srcdoc = `<script>postMessage = (data) => frameElement.answer(data)</script><script src="${source}"></script>`;
      this.ready = new Promise((done) => (frame.onload = () => done(frame.contentWindow)));
      document.body ? document.body.append(frame) : addEventListener("DOMContentLoaded", () => document.body.append(frame));
    }
    async postMessage(data) {
      const inside = await this.ready;
      inside.dispatchEvent(new inside.MessageEvent("message", { data: inside.structuredClone(data) }));
    }
  };
}
"""


def on_config(config: Any) -> Any:
    """The navigation: one tab for each kind of page, in the order in which the index lists them."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    tabs: list[Any] = [{"Start": ["README.md", "start.md", "changes.md", "contributing.md"]}]
    for kind, title in KINDS:
        listed = [f"{kind}/{name}" for name in re.findall(rf"^\| \[[^\]]+\]\({kind}/([^)]+)\)", index, re.MULTILINE)]
        tabs.append(
            {
                title: [_of_notebook(name) for name in listed]
                + ([{"API from docstrings": _api()}] if kind == "reference" else [])
            }
        )
    config.nav = [*tabs, {"Explorer": "explorer.md"}]
    config.extra["polyfills"] = [_SHIM]
    return config


def on_files(files: Files, config: Any) -> Files:
    """The pages that are made."""
    made: dict[str, str | bytes] = {
        "start.md": _page_of("README.md"),
        "changes.md": _page_of("CHANGELOG.md"),
        "contributing.md": _page_of("CONTRIBUTING.md"),
        "CITATION.cff": (ROOT / "CITATION.cff").read_bytes(),
        "explorer.md": _EXPLORER,
        "explore.html": explorer_page(),
        _SHIM: _SEARCH_FROM_FILES,
        **{f"api/{name}.md": _names_of(name) for name in _packages()},
    }
    for path in sorted((ROOT / "docs").rglob("*.ipynb")):
        place = path.relative_to(ROOT / "docs").as_posix()
        if found := files.get_file_from_path(place):
            files.remove(found)
        made.update(_pages_of_notebook(path, _of_notebook(place)))
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page of docs/ with links that stay on the site, named by the titles of their pages where the page names files."""
    return (
        NAMED_BY_FILE.sub(lambda link: f"[{_titles().get(link[1], link[1])}](", OUTSIDE.sub(r"\1", markdown))
        .replace("](../README.md)", "](start.md)")
        .replace("](../../CITATION", "](../CITATION")
        .replace(".ipynb)", ".md)")
    )


def on_post_build(config: Any) -> None:
    """The search index once more as a script: pages from files may not fetch, but they may run scripts that lie beside them."""
    folder = Path(config.site_dir) / "search"
    index = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {index}", encoding="utf-8")


@cache
def _titles() -> dict[str, str]:
    """The title of each page that the index lists, by the name of its file."""
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    kinds = "|".join(kind for kind, _ in KINDS)
    return {name: title for title, name in re.findall(rf"^\| \[([^\]]+)\]\((?:{kinds})/([^)]+)\)", index, re.MULTILINE)}


def _of_notebook(name: str) -> str:
    return re.sub(r"\.ipynb$", ".md", name)


def _page_of(name: str) -> str:
    text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](").replace("](CHANGELOG.md", "](changes.md")
    return text.replace("](CONTRIBUTING.md", "](contributing.md")


def _pages_of_notebook(notebook: Path, name: str) -> dict[str, str | bytes]:
    """A notebook as a page with its stored outputs, and the pictures beside it."""
    texts: list[str] = []
    pictures: dict[str, str | bytes] = {}
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        texts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                picture = f"{name.removesuffix('.md')}-{len(pictures) + 1}.png"
                pictures[picture] = base64.b64decode(data["image/png"])
                texts.append(f"![What the cell above draws]({Path(picture).name})")
            else:
                text = "".join(output.get("text") or data["text/plain"]).rstrip()
                texts.append(f"```text\n{text}\n```")
    return {name: "\n\n".join(texts), **pictures}


def _packages() -> dict[str, list[str]]:
    """The public names of the package, and of each of its parts that says what they are."""
    found = {"discreet": [name for name in discreet.__all__ if not name.startswith("_")]}
    for name in sorted(part.name for part in iter_modules(discreet.__path__) if not part.name.startswith("_")):
        try:
            module = importlib.import_module(f"discreet.{name}")
        except MissingExtraError:  # transformers is not needed to build the site
            continue
        if names := getattr(module, "__all__", None):
            found[f"discreet.{name}"] = list(names)
    return found


def _api() -> list[dict[str, str]]:
    return [{name: f"api/{name}.md"} for name in _packages()]


def _names_of(package: str) -> str:
    return f"# {package}\n\n" + "\n\n".join(f"::: {package}.{name}" for name in _packages()[package])
