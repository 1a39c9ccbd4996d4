"""Draw the pictures of docs/service.md: a finished search with the timeline of a route, and a running one.

Usage: PYTHONPATH=tests python tools/screenshot_service.py [--out docs/img]
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from pathlib import Path

from PIL import Image

import ndsvrp
from serve.browser import Browser
from serve.running import LIB, serving

COLOURS = 256  # of a picture: half the size of the file


def shoot(browser: Browser, address: str, instance: Path, seconds: float) -> None:
    browser.open(address)
    browser.wait("document.querySelector('#limits')?.textContent")
    browser.run(f"document.getElementById('time').value = {seconds}")
    browser.choose_file("#file", instance)
    browser.wait("document.querySelectorAll('#routes tbody tr').length > 0")


def save(browser: Browser, file: Path) -> None:
    time.sleep(1.0)  # new legs flash
    with tempfile.NamedTemporaryFile(suffix=".png") as shot:
        browser.screenshot(Path(shot.name))
        picture = Image.open(io.BytesIO(Path(shot.name).read_bytes()))
    picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/img"))
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder) / "jobs.sqlite") as address:
        browser = Browser(1360, 900)
        try:
            instance = Path(folder) / "pcvrp300.npz"
            ndsvrp.write_set(instance, ndsvrp.generate("pcvrp", 300, seed=3))
            shoot(browser, address, instance, 30)
            time.sleep(18)
            save(browser, out / "service-live.png")
            browser.run("document.getElementById('cancel').click()")
            shoot(browser, address, LIB / "Solomon/R112.txt", 10)
            browser.wait("document.querySelector('#state').textContent === 'done'", 60)
            browser.run("document.querySelectorAll('#routes tbody tr')[4].click()")
            save(browser, out / "service.png")
        finally:
            browser.close()


if __name__ == "__main__":
    main()
