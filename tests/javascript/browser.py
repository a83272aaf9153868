"""Node and a real Chromium, as a machine has them: Debian's, driven by Playwright.

Its headless shell has the same engine without the windows of a browser, and needs half the processors. Where it is installed, pages are
tested in it; in a soak, and with a profile, in the whole browser.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.needed import cannot_run, needed_module
from tests.soaking import SOAKING

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "js"
PATIENCE = 120.0  # seconds, on machines that do other things as well
SITE = "http://localhost"  # a page that browsers trust as they do one over TLS
FORGET_COPIES = (  # as pages of earlier versions made none
    "new Promise((done) => (indexedDB.deleteDatabase('discreet').onsuccess = () => done()))"
)
_TYPES = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".html": "text/html",
    ".json": "application/json",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}


def node(*arguments: str | Path) -> str:
    """What Node prints when it runs a file of the client."""
    command = shutil.which("node")
    if command is None:
        cannot_run("node is not installed: apt-get install nodejs npm")
    done = subprocess.run(
        [command, *map(str, arguments)], capture_output=True, encoding="utf-8", cwd=CLIENT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def node_modules() -> Path:
    """The tools that the client is built and checked with."""
    found = CLIENT / "node_modules"
    if not (found / "esbuild").is_dir():
        cannot_run("the tools of clients/js are not installed: npm ci --prefix clients/js")
    return found


def _playwright() -> Any:
    return needed_module("playwright.sync_api", "pip install playwright")


def _chromium_command(*, whole: bool) -> str:
    shell = None if whole else shutil.which("chromium-headless-shell")
    command = shell or shutil.which("chromium") or shutil.which("google-chrome")
    if command is None:
        cannot_run("chromium is not installed: apt-get install chromium")
    return command


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a window; what it cannot be given is said."""
    with _playwright().sync_playwright() as driver:
        command = _chromium_command(whole=SOAKING)
        browser = driver.chromium.launch(executable_path=command, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


def new_context(browser: Any, **options: Any) -> Any:
    """A context of a browser whose pages wait longer for what is to come than Playwright's half a minute."""
    context = browser.new_context(**options)
    context.set_default_timeout(1000.0 * PATIENCE)
    return context


@contextmanager
def profile(folder: Path) -> Iterator[Any]:
    """A browser with a profile in that folder, which keeps pages that were left in memory as browsers of people do."""
    with _playwright().sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            folder,
            executable_path=_chromium_command(whole=True),
            args=["--no-sandbox"],
            ignore_default_args=["--disable-back-forward-cache"],
        )
        context.set_default_timeout(1000.0 * PATIENCE)
        try:
            yield context
        finally:
            with suppress(playwright_error()):  # it may have been crashed on purpose
                context.close()


@contextmanager
def chromium_to_kill(folder: Path) -> Iterator[tuple[Any, Callable[[], None]]]:
    """The context of a browser with a profile in that folder, and what kills all its processes at once. It is killed at the end."""
    address = folder / "DevToolsActivePort"
    address.unlink(missing_ok=True)
    process = subprocess.Popen(
        [
            _chromium_command(whole=True),
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0"),
            f"--user-data-dir={folder}",
            "about:blank",
        ],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    try:
        end = time.monotonic() + PATIENCE
        while not (address.exists() and "\n" in address.read_text()):
            assert time.monotonic() < end, "the browser never said where it listens"
            assert process.poll() is None, "the browser ended before it was used"
            time.sleep(0.05)
        port = address.read_text().split("\n")[0]
        with _playwright().sync_playwright() as driver:
            context = driver.chromium.connect_over_cdp(f"http://127.0.0.1:{port}").contexts[0]
            context.set_default_timeout(1000.0 * PATIENCE)
            yield context, kill
    finally:
        kill()


def playwright_error() -> type[Exception]:
    """What Playwright raises, among others when a browser is gone."""
    found: type[Exception] = _playwright().Error
    return found


def served(page: Any, files: dict[str, Path | str]) -> None:
    """Let a page find these files, paths or texts by their address, and nothing else: no network is needed or used."""

    def answer(route: Any) -> None:
        name = route.request.url.removeprefix(SITE).split("?")[0]
        for address, found in files.items():
            path = found / name.removeprefix(address) if isinstance(found, Path) and found.is_dir() else found
            if name == address or (isinstance(found, Path) and found.is_dir() and name.startswith(address)):
                kind = _TYPES.get(Path(name).suffix, "text/html" if isinstance(found, str) else "text/plain")
                body = path if isinstance(path, str) else path.read_bytes()
                route.fulfill(body=body, content_type=f"{kind}; charset=utf-8")
                return
        route.fulfill(status=404, body="")

    page.route("**/*", answer)


def until(page: Any, holds: str | Callable[[], object]) -> None:
    """Wait until an expression of the page, or a function here, is true; asked from outside, since our pages forbid `eval`.

    A page that is left or loaded anew at that moment has no answer yet.
    """

    def is_so() -> object:
        if not isinstance(holds, str):
            return holds()
        try:
            return page.evaluate(holds)
        except playwright_error() as error:
            if "Execution context was destroyed" in str(error):
                return False
            raise

    end, pause = time.monotonic() + PATIENCE, 10.0
    while not is_so():
        assert time.monotonic() < end, f"it never came to {holds}"
        page.wait_for_timeout(pause)
        pause = min(1.5 * pause, 150.0)  # each question costs the page and us a few milliseconds


@contextmanager
def loading_anew(page: Any) -> Iterator[None]:
    """Steps by which the page is loaded anew, which is waited for. An address that a page changes itself is no such step."""
    page.evaluate("globalThis.isOld = true")
    yield
    until(page, "!globalThis.isOld")


def watched(page: Any) -> Callable[[], list[str]]:
    """What the page has complained about so far: errors of its own, and lines in the console that are warnings or errors."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda line: found.append(line.text) if line.type in ("error", "warning") else None)
    return lambda: list(found)
