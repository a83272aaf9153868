"""The flights' aircraft as devices, a visitor in a browser, and the live page over them: `python -m tests.collect.visited`.

Devices send by the Python client, in processes of their own, while the page is open; then a person takes part from Chromium. What the
page shows is what the service says, and that is what `discreet estimate` says of the export.
"""

import argparse
import json
import os
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.client.flights import agreed, aircraft, check, receipts
from tests.collect.running import running
from tests.javascript.browser import chromium, new_context, until

SHOWN = """[...document.querySelectorAll('#rows li')].map((row) =>
  [row.querySelector('.name').textContent, ...['samples', 'estimate', 'low', 'high'].map((name) => Number(row.dataset[name]))])"""


def visit(page: Any, address: str) -> str:
    """Take part as a person who has seen three places; what was sent."""
    page.goto(f"{address}/take-part")
    until(page, "document.documentElement.dataset.ready")
    for place in ("ATL", "ATL", "LAX", "ORD"):
        page.fill("#entry", place)
        page.press("#entry", "Enter")
    page.click("#draw")
    page.wait_for_selector("#sample-card:not([hidden])")
    sample = json.loads(page.locator("#sample").get_attribute("data-sample"))
    assert json.loads(page.locator("#request").inner_text())["sample"] == sample
    page.click("#send")
    page.wait_for_selector("#receipt-card:not([hidden])")
    return str(sample)


def compare(page: Any, found: Any) -> None:
    """All rows of the page are those of the service, the largest first."""
    until(page, f"document.getElementById('samples').dataset.number === '{found['samples']}'")
    if page.locator("#all").get_attribute("aria-expanded") == "false":
        page.click("#all")
    expected = [
        [row["outcome"], row["samples"], *(row["law"][name] for name in ("estimate", "low", "high"))]
        for row in found["shares"]
    ]
    assert page.evaluate(SHOWN) == sorted(expected, key=lambda row: -row[2])
    page.click("#all")


def run(devices: int, processes: int, picture: str | None = None) -> float:
    """So many devices and a visitor; how many seconds the devices took. `picture`: the page early and late, in files that begin so."""
    held = list(enumerate(aircraft(devices)))
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        agreed(folder)
        with running(folder, "agreement.json") as collector:
            live = new_context(browser, viewport={"width": 1280, "height": 900}).new_page()
            live.goto(f"{collector.address}/")
            began = time.monotonic()
            with get_context("spawn").Pool(processes) as pool:
                shares = [(collector.address, name, held[start::processes]) for start in range(processes)]
                sending = pool.starmap_async(receipts, shares)
                until(live, "Number(document.getElementById('samples').dataset.number) > 0")
                if picture is not None:
                    live.screenshot(path=f"{picture}-early.png", full_page=True)
                said = [sample for part in sending.get() for sample in part]
            took = time.monotonic() - began
            said.append(visit(new_context(browser).new_page(), collector.address))
            found = check(collector, folder, said)
            compare(live, found)
            if picture is not None:
                live.screenshot(path=f"{picture}-late.png", full_page=True)
            assert collector.said == ""
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=4043)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--picture", help="where to put pictures of the page")
    options = parser.parse_args()
    took = run(options.devices, options.processes, options.picture)
    print(  # noqa: T201
        f"{options.devices:,} devices in {took:.0f} s and a visitor: the page shows what the service says, which is what its export says"
    )


if __name__ == "__main__":
    main()
