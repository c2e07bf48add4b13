"""Fuzz the whole OpenAPI: no 5xx answers, and every answer is as documented."""

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.fakes import results
from tests.fakes.client import Poster

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
EXAMPLES = 60


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_operation_answers_as_documented(http: TestClient, post: Poster) -> None:
    post.made()
    post(results.make_failure())
    schema = schemathesis.openapi.from_asgi("/openapi.json", http.app)
    failed: list[str] = []
    for described in schema.get_all_operations():
        operation = described.ok()

        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def answers(case: schemathesis.Case) -> None:
            case.call_and_validate(checks=CHECKS)

        try:
            answers()
        except Exception as error:
            failed.append(f"{operation.label}: {error}")
    assert not failed, "\n\n".join(failed)
