"""Heads of tables: what each column means, and by what it sorts. One table for all pages."""

import tomllib
from pathlib import Path
from typing import NamedTuple


class Head(NamedTuple):
    """``href``: the part of the method that defines it; ``sort``: the value that sorts by it."""

    label: str
    meaning: str
    href: str
    sort: str = ""

    def of(self, unit: str) -> str:
        """The label where speeds count this unit."""
        return self.label.replace("Samples", f"{unit.title()}s")


HEADS = {
    name: Head(**head)
    for name, head in tomllib.loads(
        Path(__file__).with_name("heads.toml").read_text("utf-8")
    ).items()
}
