"""``make screenshots``: take the pictures in ``docs/screenshots`` again, of invented results."""

import argparse
import signal
import sys
import tempfile
from pathlib import Path

from tests.browser import open_browser
from tests.fakes import fleet as fakes
from tests.pages.looking import THREE, running_fleet

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
WIDTH = 1440
SCHEMES = ("light", "dark")


def take(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as home:
        fakes.make(Path(home))
        with running_fleet(Path(home)) as fleet, open_browser() as browser:
            pages = {
                "leaderboard": ("/?workload=mnist-cnn", 1000),
                "compare": (f"/compare?ids={THREE}", 1000),
                "hardware": ("/hardware/apple-m2-max-30-core-gpu", 1000),
                "result": (f"/results/{fleet.result}", 1400),
            }
            for scheme in SCHEMES:
                context = browser.new_context(color_scheme=scheme)
                page = context.new_page()
                for name, (address, height) in pages.items():
                    page.set_viewport_size({"width": WIDTH, "height": height})
                    page.goto(fleet.address + address)
                    page.screenshot(path=folder / f"{name}-{scheme}.png")
                context.close()


if __name__ == "__main__":
    argparse.ArgumentParser(prog="make screenshots", description=__doc__).parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    take(FOLDER)
