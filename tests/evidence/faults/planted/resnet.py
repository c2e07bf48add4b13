"""Faults with ResNet50's frozen layers."""

from typing import Any

from ..fault import Fault, Setup, patched

RESNET = Setup("resnet50-transfer", "torch")


def batch_statistics(right: Any) -> Any:
    from torch.nn import functional

    def normalisation(*given: Any) -> Any:
        fixed = right(*given)
        fixed.forward = lambda x: functional.batch_norm(
            x, None, None, fixed.weight, fixed.bias, training=True, eps=fixed.eps
        )
        return fixed

    return normalisation


def one_batch_kept(session: Any) -> None:
    """The frozen layers run once; every later batch of that size gets the features of the first."""
    frozen, last = session._model[:-1], session._model[-1]
    kept: list[Any] = []

    def logits(x: Any) -> Any:
        if not kept:
            kept.append(frozen(x).detach())
        return last(kept[0] if len(x) == len(kept[0]) else frozen(x))

    session._logits = logits


def features_once(session: Any) -> None:
    """The features of all samples are computed when the session opens: the same mathematics."""
    import torch

    frozen, last = session._model[:-1], session._model[-1]
    with torch.no_grad():
        session._x = torch.cat([frozen(x) for x in session._x.split(50)])
    # What evaluates the session still gives it pictures.
    session._logits = lambda x: last(x if x.ndim == 2 else frozen(x))


WHERE = "engines/torch/sessions.py"
FAULTS = (
    Fault(
        "E1", "batch norm by the batch's statistics", "engines/torch/model.py", RESNET,
        patched("torch.model:_normalisation", batch_statistics),
    ),
    Fault(
        "E2", "features of one batch kept", WHERE, RESNET,
        lambda here: here.sessions(one_batch_kept), in_timed_loop=True,
    ),
    Fault(
        "F10", "features of the frozen layers computed once", WHERE, RESNET,
        lambda here: here.sessions(features_once), in_timed_loop=True,
    ),
)  # fmt: skip
