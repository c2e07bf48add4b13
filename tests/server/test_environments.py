"""The filterable properties of a result's machine and environment."""

import pytest
from tests.fakes import results

from bench_protocol.payload.machine import Environment
from bench_server.db.environments import framework_version


@pytest.mark.parametrize(
    ("packages", "version"),
    [
        ({"tensorflow": "2.18.1", "tensorflow-metal": "1.2.0"}, "2.18.1"),
        ({"tensorflow-cpu": "2.21.0", "keras": "3.15.1"}, "2.21.0"),
        ({"tensorflow-metal": "1.2.0"}, None),
        ({}, None),
    ],
)
def test_a_framework_has_its_version_under_any_wheels_name(
    packages: dict[str, str], version: str | None
) -> None:
    environment = Environment(python="3.11.7", packages=packages, libraries={}, settings={})
    cell = results.make_cell(framework="tensorflow")
    made = results.make_result(cell=cell, environment=environment)
    assert framework_version(made) == version
