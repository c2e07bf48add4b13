"""Input of ``verify``: addresses, bundles and envelopes."""

from pathlib import Path

import pytest

from bench_agent.base.errors import UsageProblem
from bench_agent.remote.verify import read_file


def test_what_is_no_file_is_told_without_the_systems_number(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match=r"nonsense cannot be read \(No such file .*address"):
        read_file(tmp_path / "nonsense")


def test_what_is_neither_bundle_nor_envelope(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("{}")
    with pytest.raises(UsageProblem, match="neither a bundle nor an envelope"):
        read_file(tmp_path / "other")
