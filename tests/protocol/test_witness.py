"""What a witness tells: which weights it follows."""

import pytest

from bench_protocol.catalogue.catalogue import CATALOGUE, workload_named
from bench_protocol.catalogue.seeded import initial_weights
from bench_protocol.catalogue.workloads import Workload
from bench_protocol.payload.witness import trained_tensors


@pytest.mark.parametrize("workload", CATALOGUE, ids=lambda workload: workload.name)
def test_the_trained_tensors_are_those_of_the_weights(workload: Workload) -> None:
    weights = initial_weights(workload)
    tensors = list(trained_tensors(workload))
    assert all(weights[t.index][t.name].shape == t.shape for t in tensors)
    assert sum(weights[t.index][t.name].size for t in tensors) == workload.trained_parameter_count
    assert {t.own_name for t in tensors} <= {"kernel", "recurrent_kernel", "bias"}


def test_a_residual_blocks_tensors_are_main_then_shortcut() -> None:
    resnet = workload_named("resnet50-transfer")
    fields = {name: getattr(resnet, name) for name in Workload.model_fields}
    trained = list(trained_tensors(Workload(**fields | {"frozen_layers": 0})))
    names = [tensor.name for tensor in trained if tensor.index == trained[4].index]
    assert names[:4] == ["main.0.kernel", "main.0.bias", "main.1.gamma", "main.1.beta"]
    assert names[-2:] == ["shortcut.1.gamma", "shortcut.1.beta"]
    assert len(trained) == 214
