"""Which schedulers may be used."""

import pytest

from bench_protocol.base.scheduler import SchedulerProblem, check_address


@pytest.mark.parametrize(
    "address",
    ["tls://bench.lab:8786", "tcp://127.0.0.1:8786", "tcp://[::1]:1", "tcp://localhost:1"],
)
def test_schedulers_with_tls_or_on_loopback_are_used(address: str) -> None:
    assert check_address(address) == address


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("tcp://bench.lab:8786", "has no TLS"),
        ("tcp://10.0.0.7:8786", "has no TLS"),
        ("tcp://127.0.0.1.example.org:8786", "has no TLS"),
        ("ws://127.0.0.1:8786", "is not the address of a scheduler"),
        ("tls://bench.lab", "is not the address of a scheduler"),
        ("bench.lab:8786", "is not the address of a scheduler"),
        ("tls://bench.lab:99999", "is not the address of a scheduler"),
    ],
)
def test_other_schedulers_are_refused(address: str, says: str) -> None:
    with pytest.raises(SchedulerProblem, match=says):
        check_address(address)
