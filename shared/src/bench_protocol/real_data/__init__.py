"""Real data sets: which files they are, and the arrays that they hold.

The agent trains on these arrays. A server or a user with the same files recomputes its results.
"""

from ..base.errors import DataProblem
from ..catalogue.workloads import DataSet
from .parse import Arrays, Split


def cut(arrays: Arrays, data_set: DataSet) -> tuple[Split, ...]:
    """Split published samples: training in order, the last of them for validation, then test.

    Raises:
        DataProblem: there are too few samples, or they have another shape.
    """
    first, validation = data_set.train_samples, data_set.validation_samples
    parts = [_part(arrays.train, 0, first, data_set)]
    if validation:
        parts.append(_part(arrays.train, first, validation, data_set))
    return (*parts, _part(arrays.test, 0, data_set.test_samples, data_set))


def _part(split: Split, start: int, count: int, data_set: DataSet) -> Split:
    stop = start + count
    pictures, labels = split[0][start:stop], split[1][start:stop]
    if len(labels) < count:
        raise DataProblem(
            f"{data_set.name} has {len(split[1]):,} samples, {start + count:,} needed"
        )
    if int(labels.max()) >= data_set.classes:
        raise DataProblem(f"{data_set.name} has a label {labels.max()} of {data_set.classes}")
    try:
        return pictures.reshape(count, *data_set.sample_shape), labels
    except ValueError:
        shape = pictures.shape[1:]
        raise DataProblem(
            f"{data_set.name} has samples of shape {shape}, not {data_set.sample_shape}"
        ) from None
