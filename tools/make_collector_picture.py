"""The picture of a collection's live page in the docs: PYTHONPATH=. python tools/make_collector_picture.py.

Aircraft of the bundled flights, a few hundred of them, each send one sample of the time zones they flew to; a browser looks at the page.
"""

import tempfile
from pathlib import Path

from tests.collect.running import running
from tests.javascript.browser import chromium, until

from discreet import Agreement, LinearSampler, Simplex
from discreet.research.data import zone_logbooks

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "collector.png"
CLIENTS = 600


def main() -> None:
    """Collect, look, write."""
    books = zone_logbooks()
    sampler = LinearSampler(Simplex(books.outcomes), epsilon=2.0)
    agreement = Agreement.of(sampler, purpose="Which time zones do aircraft fly to?")
    counts = books.counts[:CLIENTS]
    samples = sampler.release(counts / counts.sum(axis=1, keepdims=True))
    rows = [{"client": f"c{number}", "key": "k", "sample": sample} for number, sample in enumerate(samples)]
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        agreement.write(folder / "agreement.json")
        with running(folder, "agreement.json") as collector:
            answer = collector.send({"agreement": agreement.id, "round": 1, "samples": rows})
            assert answer.json["counted"] == CLIENTS
            page = browser.new_page(viewport={"width": 1180, "height": 800}, reduced_motion="reduce")
            page.goto(f"{collector.address}/")
            until(page, f"document.getElementById('samples').dataset.number === '{CLIENTS}'")
            end = page.locator("#population").bounding_box()
            assert end is not None
            page.set_viewport_size({"width": 1180, "height": round(end["y"] + end["height"]) + 40})
            page.screenshot(path=PICTURE)
    print(PICTURE)


if __name__ == "__main__":
    main()
