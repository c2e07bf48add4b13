"""Accuracy and loss that a workload reaches after its own number of epochs: the band of a right
training.

A band catches training that is fast because it is wrong; it is no contest of accuracies, so it is
as wide as frameworks and seeds need. Bands of real data hold for all of a workload's batch sizes.
Generated data is learned slowly, so its bands are narrow, of the loss too, and hold for the default
batch size only.
"""

from dataclasses import dataclass
from typing import Literal

from ..base.format import percent
from ..catalogue.workloads import Workload
from ..payload.result import Blocks, Measurement


@dataclass(frozen=True)
class Band:
    """Accuracy on the test split, from ``lowest`` to ``highest``.

    ``loss``: lowest and highest loss on the test split; with it the band is of the default batch
    size.

    ``data_digest`` as in :func:`bench_protocol.catalogue.seeded.data_digest`.
    """

    workload: str
    data_digest: str
    lowest: float
    highest: float
    source: str
    loss: tuple[float, float] | None = None


@dataclass(frozen=True)
class AccuracyVerdict:
    """The verdict on an accuracy; ``sentence`` gives the figures for people."""

    verdict: Literal["within", "diverged", "accuracy_unchecked"]
    sentence: str


EXPERIMENTS = "github.com/MysterionRise/tensorflow-metal-experiments, 2026-02-04"
MEASURED = "Trainmark on an x86-64 CPU, 2026-11-21"
LEARNED = "Trainmark on an x86-64 CPU, 2026-11-24"
DERIVED = "derived from shorter training on an x86-64 CPU, 2026-11-24"
MNIST = "df535e510ecf656a1bc743537236868f3cb847bb31fa2efc79a5d5d47b70c790"
# Fashion-MNIST of 60,000/10,000; of 50,000/10,000/10,000, and the same without the channel.
FASHION_60K = "9a5095a63384bde82dee84b5f2e5edd37dbdef3a8a1bd813f23cc5c4a078946d"
FASHION_50K = "7a4ef67e33a378deee8602b2c230a047fdd497c36706ee9bf5c309ab878c3f9a"
FASHION_50K_ROWS = "76eedcb982b54d12f272c573041c41393089e77f6e26b87e499b3ea87f8eb3ec"
# Generated data.
MNIST_GENERATED = "6bb4650c49b326a3d373f2e7e71174dc3b0198ae685e756a2ad2c9031359696f"
FASHION_60K_GENERATED = "69f8a1a59cb2e7c0118482d6d45387c2fe5b817b81c70bca75645a2d8b6173b1"
FASHION_50K_GENERATED = "4b09d49bdc2339a94dd4a124b991f850867334d98dbe2ec7656be9f8d46b9758"
FASHION_50K_ROWS_GENERATED = "bc59786d1f3c4ef7eef4b206695fb98afc6b65ec1b33721fc79df4ad68c0be47"
CIFAR_100_GENERATED = "60aede4f9347dc46e757c021c0d6945a0e4f985f6235179509a412d3567a88e0"

BANDS: tuple[Band, ...] = (
    # Published: 0.987 to 0.991.
    Band("mnist-cnn", MNIST, 0.975, 0.998, EXPERIMENTS),
    # Published: 0.804 to 0.877, on a Metal GPU, by two frameworks with different training;
    # measured with TensorFlow on a CPU: 0.906 at batch 64.
    Band("fashion-cnn", FASHION_60K, 0.80, 0.93, f"{EXPERIMENTS}; {MEASURED}"),
    # Measured with TensorFlow at batch 128: 0.873, 0.900, 0.877. Ten epochs at batch 1,024 have
    # hardly more steps than one at 128, with an accuracy of 0.837, 0.828, 0.815.
    Band("fashion-mlp", FASHION_50K, 0.80, 0.92, MEASURED),
    Band("fashion-convnet", FASHION_50K, 0.79, 0.94, MEASURED),
    Band("fashion-lstm", FASHION_50K_ROWS, 0.78, 0.92, MEASURED),
    # Generated data, at the default batch, docs/notebook.md#generated-data-that-is-hard.
    # Highest accuracy: a perfect model's and 0.01. Lowest accuracy and highest loss: two fifths of
    # the way from the mean at the end to what half of the steps reach.
    Band("fashion-mlp", FASHION_50K_GENERATED, 0.828, 0.904, f"{LEARNED}, n = 5", (0.55, 0.875)),
    Band("mnist-dense", MNIST_GENERATED, 0.827, 0.898, f"{LEARNED}, n = 5", (0.55, 0.912)),
    Band(
        "fashion-lstm", FASHION_50K_ROWS_GENERATED, 0.745, 0.901, f"{LEARNED}, n = 2", (0.55, 1.05)
    ),
    Band(
        "fashion-convnet", FASHION_50K_GENERATED, 0.815, 0.904, f"{LEARNED}, n = 1", (0.55, 0.928)
    ),
    # The layers of fashion-convnet, twice the steps and half the patterns.
    Band("mnist-cnn", MNIST_GENERATED, 0.80, 0.898, DERIVED, (0.55, 1.00)),
    # Not measured to the end: a quarter of the steps reach 0.549 and 1.57 (n = 1).
    Band("fashion-cnn", FASHION_60K_GENERATED, 0.60, 0.904, DERIVED, (0.55, 1.45)),
    # Not measured: a model of an eighth of the width has 0.088 and 4.22 after a tenth of the steps.
    Band("cifar100-vgg16", CIFAR_100_GENERATED, 0.15, 0.883, DERIVED, (0.80, 3.90)),
)


def judge(
    workload: Workload,
    measured: Measurement,
    bands: tuple[Band, ...] = BANDS,
    batch_size: int | None = None,
) -> AccuracyVerdict:
    """Compare an accuracy with its band; ``accuracy_unchecked`` where there is none.

    Args:
        batch_size: the cell's; if not given, the steps of whole epochs show whether it is the
            workload's default.
    """
    evaluation = measured.evaluation
    if evaluation is None:
        return AccuracyVerdict("accuracy_unchecked", "accuracy was not evaluated")
    reached = f"accuracy {percent(evaluation.accuracy)} after {evaluation.epochs} epochs"
    if evaluation.epochs != workload.epochs:
        return AccuracyVerdict(
            "accuracy_unchecked", f"{reached}; bands are for {workload.epochs} epochs"
        )
    digest = measured.data_digest
    band = next((b for b in bands if (b.workload, b.data_digest) == (workload.name, digest)), None)
    if band is None:
        return AccuracyVerdict("accuracy_unchecked", f"{reached}; no band is known for these data")
    if band.loss is not None and not _default_batch(workload, measured.blocks, batch_size):
        return AccuracyVerdict(
            "accuracy_unchecked",
            f"{reached}; the band of generated data is for batch {workload.batch_size}",
        )
    within = band.lowest <= evaluation.accuracy <= band.highest
    between = f"{percent(band.lowest)} to {percent(band.highest)} ({band.source})"
    sentence = f"{reached} lies {'within' if within else 'outside'} {between}"
    if band.loss is not None and within:
        low, high = band.loss
        loss = evaluation.loss
        within = loss is not None and low <= loss <= high
        shown = "not finite" if loss is None else f"{loss:.3g}"
        sentence += f"; the loss {shown} lies {'within' if within else 'outside'} {low} to {high}"
    return AccuracyVerdict("within" if within else "diverged", sentence)


def _default_batch(workload: Workload, blocks: Blocks, batch_size: int | None) -> bool:
    if batch_size is not None:
        return batch_size == workload.batch_size
    if blocks.stop_reason != "epochs":
        return True
    # Steps that do not fill a last block are trained without being timed.
    timed = blocks.steps_per_block * len(blocks.durations_ns)
    steps = workload.epochs * workload.steps_per_epoch(workload.batch_size)
    return steps - blocks.steps_per_block < timed <= steps
