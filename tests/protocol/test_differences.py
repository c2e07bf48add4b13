"""Differences of machine and software between two results, and their words."""

import pytest
from tests.fakes.results import make_machine, make_result

from bench_protocol.payload.differences import Difference, differences, facts_of, in_words


def test_differences_are_by_dotted_names() -> None:
    before = make_result(machine=make_machine(gpu=("cuda", "NVIDIA H200", None)))
    gpu = before.machine.gpus[0].model_copy(update={"driver": "580.2"})
    machine = before.machine.model_copy(update={"gpus": (gpu,)})
    packages = {**before.environment.packages, "keras": "3.16.0"}
    environment = before.environment.model_copy(update={"packages": packages})
    after = before.model_copy(update={"machine": machine, "environment": environment})
    assert differences(facts_of(before), facts_of(after)) == (
        Difference("environment.packages.keras", "3.15.1", "3.16.0"),
        Difference("machine.gpus.0.driver", None, "580.2"),
    )
    assert differences(facts_of(before), facts_of(before)) == ()


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (Difference("machine.os.version", "14.6", "15.5"), "macOS 14.6 became 15.5"),
        (
            Difference("machine.gpus.1.driver", "570.1", "580.2"),
            "driver of GPU 1 570.1 became 580.2",
        ),
        (Difference("environment.libraries.xla", None, "1.2"), "xla 1.2 was added"),
        (
            Difference("environment.settings.XLA_FLAGS", "a", None),
            "settings XLA_FLAGS a was removed",
        ),
        (
            Difference("machine.os.page_bytes", "4096", "65536"),
            "page size 4.0 KiB became 64.0 KiB",
        ),
        (Difference("machine.os.page_bytes", None, "16384"), "page size 16.0 KiB was added"),
        (Difference("agent.version", "0.1.0", "0.2.0"), "agent version 0.1.0 became 0.2.0"),
    ],
)
def test_words(difference: Difference, words: str) -> None:
    assert in_words(difference, "macos") == words
