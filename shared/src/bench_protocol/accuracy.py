"""Accuracy bands: the test accuracy of a correct training after the workload's number of epochs. A
band detects training that is fast because it is wrong. It does not rank accuracies, so it is as
wide as frameworks, seeds and the workload's batch sizes need.
"""

from dataclasses import dataclass
from typing import Literal

from .format import percent
from .matrix import DataKind
from .result import Measurement
from .workloads import Workload


@dataclass(frozen=True)
class Band:
    """Accuracy on the test split, from ``lowest`` to ``highest``.

    ``data_digest`` as in :func:`bench_protocol.seeded.data_digest`; None if we have not computed
    the digest of the published arrays: then the label ``real`` must suffice.
    """

    workload: str
    data_digest: str | None
    lowest: float
    highest: float
    source: str


@dataclass(frozen=True)
class AccuracyVerdict:
    """The verdict on an accuracy; ``sentence`` gives the figures for people."""

    verdict: Literal["within", "diverged", "accuracy_unchecked"]
    sentence: str


EXPERIMENTS = "github.com/MysterionRise/tensorflow-metal-experiments, 2026-02-04"
MEASURED = "Trainmark on an x86-64 CPU, 2026-11-21"
# Fashion-MNIST of 60,000/10,000; of 50,000/10,000/10,000, and the same without the channel.
FASHION_60K = "9a5095a63384bde82dee84b5f2e5edd37dbdef3a8a1bd813f23cc5c4a078946d"
FASHION_50K = "7a4ef67e33a378deee8602b2c230a047fdd497c36706ee9bf5c309ab878c3f9a"
FASHION_50K_ROWS = "76eedcb982b54d12f272c573041c41393089e77f6e26b87e499b3ea87f8eb3ec"
# Generated data: every workload here learns its patterns in the first epoch.
MNIST_GENERATED = "59e7836532925d88caf1172b1679ddfb8edbc8c4eab570f868acf8b0f1ddfb69"
FASHION_60K_GENERATED = "2d76ae190fd42e3cecccf519153da15c5fe7c0b88362d7db5536b3e845426877"
FASHION_50K_GENERATED = "f1404e30b2eebcec84cfa40140de4521347fdd98124ce6a0ee679a7ade9b20b2"
FASHION_50K_ROWS_GENERATED = "a8fa56d4e966cc993a137fab0337c4c4cdcf7b94f0af045bff197dcef9bc9abc"
LEARNT = (0.98, 1.0)

BANDS: tuple[Band, ...] = (
    # Published: 0.987 to 0.991. MNIST was not available to us: no digest, nothing measured.
    Band("mnist-cnn", None, 0.975, 0.998, EXPERIMENTS),
    # Published: 0.804 to 0.877, on a Metal GPU, by two frameworks with different training;
    # measured with TensorFlow on a CPU: 0.906 at batch 64.
    Band("fashion-cnn", FASHION_60K, 0.80, 0.93, f"{EXPERIMENTS}; {MEASURED}"),
    # Measured with TensorFlow at batch 128: 0.873, 0.900, 0.877. Ten epochs at batch 1,024 have
    # hardly more steps than one at 128, with an accuracy of 0.837, 0.828, 0.815.
    Band("fashion-mlp", FASHION_50K, 0.80, 0.92, MEASURED),
    Band("fashion-convnet", FASHION_50K, 0.79, 0.94, MEASURED),
    Band("fashion-lstm", FASHION_50K_ROWS, 0.78, 0.92, MEASURED),
    Band("mnist-cnn", MNIST_GENERATED, *LEARNT, MEASURED),
    Band("mnist-dense", MNIST_GENERATED, *LEARNT, MEASURED),
    Band("fashion-cnn", FASHION_60K_GENERATED, *LEARNT, MEASURED),
    Band("fashion-mlp", FASHION_50K_GENERATED, *LEARNT, MEASURED),
    Band("fashion-convnet", FASHION_50K_GENERATED, *LEARNT, MEASURED),
    Band("fashion-lstm", FASHION_50K_ROWS_GENERATED, *LEARNT, MEASURED),
)


def judge(
    workload: Workload,
    kind: DataKind,
    measured: Measurement,
    bands: tuple[Band, ...] = BANDS,
) -> AccuracyVerdict:
    """Compare an accuracy with its band; ``accuracy_unchecked`` without accuracy or band."""
    evaluation = measured.evaluation
    if evaluation is None:
        return AccuracyVerdict("accuracy_unchecked", "accuracy was not evaluated")
    reached = f"accuracy {percent(evaluation.accuracy)} after {evaluation.epochs} epochs"
    if evaluation.epochs != workload.epochs or evaluation.split != "test":
        return AccuracyVerdict(
            "accuracy_unchecked",
            f"{reached} on the {evaluation.split} split; bands are for {workload.epochs} epochs "
            "and the test split",
        )
    band = _band(workload.name, kind, measured.data_digest, bands)
    if band is None:
        return AccuracyVerdict("accuracy_unchecked", f"{reached}; no band is known for these data")
    within = band.lowest <= evaluation.accuracy <= band.highest
    between = f"{percent(band.lowest)} to {percent(band.highest)} ({band.source})"
    return AccuracyVerdict(
        "within" if within else "diverged",
        f"{reached} lies {'within' if within else 'outside'} {between}",
    )


def _band(name: str, kind: DataKind, digest: str | None, bands: tuple[Band, ...]) -> Band | None:
    for band in bands:
        has_digest = band.data_digest is not None
        if band.workload == name and (band.data_digest == digest if has_digest else kind == "real"):
            return band
    return None
