"""The page that a demo with a fault ends with: what worked, what did not, one command for each.

Pure: it takes the documents that ``bench-agent status`` and ``bench-agent doctor`` print.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench_protocol.base.format import plural

Document = Mapping[str, Any]
# Doctor's checks of what a first run needs. None of them trains.
CHECKS = (
    "system", "python", "architecture", "environments", "shared-libraries", "frameworks",
    "metal-pair", "metal", "mlx-backend", "nvidia-driver", "cuda",
)  # fmt: skip


def page(
    results: Sequence[Document], findings: Sequence[Document], agent: str, code: int = 0
) -> str | None:
    """The page; None if nothing failed.

    Args:
        results: of this run, as ``status --json`` lists them.
        findings: of doctor, as ``doctor --json`` lists them.
        agent: the command line that runs the agent with the demo's folder.
        code: the exit code of ``bench-agent run``.
    """
    faults = [*_no_run(results, agent, code), *_failed_cells(results, agent), *_faults(findings)]
    if not faults:
        return None
    lines = ["", "What worked", *_worked(results, findings), "", "What did not"]
    for sentence, command in faults:
        lines.append(f"  {sentence}")
        lines += [f"      {command}"] if command else []
    lines += [
        "",
        "A report for an issue, without private values:",
        f"      {agent} doctor --bundle trainmark-bundle.txt",
    ]
    return "\n".join(lines)


def _worked(results: Sequence[Document], findings: Sequence[Document]) -> Iterator[str]:
    for place, its in _by_place(results).items():
        measured = sum(result["status"] == "measured" for result in its)
        if measured:
            yield f"  {' on '.join(place)}: {measured} of {_repeats(its)} measured"
    if not any(result["status"] == "measured" for result in results):
        yield "  no repeat was measured"
    for finding in findings:
        if finding["verdict"] == "ok" and finding["id"].startswith("frameworks."):
            yield f"  {finding['sentence']}"


def _repeats(results: Sequence[Document]) -> str:
    return plural(len(results), "repeat")


def _no_run(results: Sequence[Document], agent: str, code: int) -> Iterator[tuple[str, str]]:
    """A run that ended before its first repeat."""
    if code and not results:
        yield (
            f"bench-agent run ended with exit code {code} before its first repeat; its message is "
            "above",
            f"{agent} run --preset smoke",
        )


def _failed_cells(results: Sequence[Document], agent: str) -> Iterator[tuple[str, str]]:
    """Each framework's device with failed repeats, and the command that measures it again."""
    for (framework, device), its in _by_place(results).items():
        failed = [result for result in its if result["status"] != "measured"]
        if failed:
            reasons = ", ".join(dict.fromkeys(result["failure"] for result in failed))
            workloads = dict.fromkeys(result["cell"]["workload"] for result in failed)
            only = " ".join(f"--workload {name}" for name in workloads)
            yield (
                f"{framework} on {device}: {len(failed)} of {_repeats(its)} failed: {reasons}",
                f"{agent} run --preset smoke --framework {framework} --device {device} {only}",
            )


def _faults(findings: Sequence[Document]) -> Iterator[tuple[str, str | None]]:
    for finding in findings:
        if finding["verdict"] in ("warn", "fail"):
            yield finding["sentence"], finding["hint"]


def _by_place(results: Sequence[Document]) -> dict[tuple[str, str], list[Document]]:
    """Results by framework and device."""
    places: dict[tuple[str, str], list[Document]] = {}
    for result in results:
        device = result["cell"]["device"]
        name = device["kind"] + (f":{device['index']}" if device["index"] else "")
        places.setdefault((result["cell"]["framework"], name), []).append(result)
    return places
