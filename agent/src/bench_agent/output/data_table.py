"""Output of ``data list`` and ``data verify`` for people."""

from pathlib import Path

from rich.console import Console

from bench_protocol.base import format as people

from ..data.inventory import Document
from .console import FAILURE, say, show_table

HEADINGS = ("data set", "size", "here", "workloads")


def print_list(document: Document, console: Console) -> None:
    """Table of :func:`~bench_agent.data.inventory.list_document`."""
    rows = []
    for item in document["data_sets"]:
        present = [place for place in item["files"].values() if place]
        whole = len(present) == len(item["files"])
        count = f"{len(present)} of {people.plural(len(item['files']), 'file')}"
        here = str(Path(present[0]).parent) if whole else count
        workloads = ", ".join(item["workloads"])
        rows.append([item["name"], people.size(item["bytes"]), here, workloads])
    show_table(console, HEADINGS, rows, right=("size",))
    licences = ", ".join(f"{item['name']} {item['licence']}" for item in document["data_sets"])
    say(console, f"Licences: {licences}")
    say(console, f"To download them into {document['folder']}:\n  bench-agent data fetch")


def print_verified(document: Document, console: Console) -> None:
    """Lines of :func:`~bench_agent.data.inventory.verify_document`."""
    for item in document["data_sets"]:
        if item["problem"]:  # begins with a name or a path
            say(console, item["problem"], FAILURE)
        else:
            say(console, f"{item['name']}: every file has the expected digest; its arrays:")
        for workload, digest in item["digests"].items():
            say(console, f"  {digest}  {workload}")
