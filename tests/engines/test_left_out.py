"""Tests of a framework that is not installed are left out, whichever module they import first."""

import pytest

from . import conftest


def of_a_test_that_lacks(module: str) -> None:
    call = conftest.pytest_runtest_call()
    next(call)
    call.throw(ModuleNotFoundError(name=module))


@pytest.mark.parametrize("module", ["mlx.core", "tensorflow", "keras.layers", "jax", "torch._C"])
def test_a_missing_framework(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setattr(conftest, "find_spec", lambda name: None)
    with pytest.raises(pytest.skip.Exception, match="is not installed: make frameworks"):
        of_a_test_that_lacks(module)


def test_any_other_missing_module_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "find_spec", lambda name: name)
    for module in ("scipy", "keras"):  # TensorFlow is there
        with pytest.raises(ModuleNotFoundError):
            of_a_test_that_lacks(module)
