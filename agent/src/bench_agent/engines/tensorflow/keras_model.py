"""A Keras model from a workload's layer list, with the seeded weights in it."""

from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
from keras import optimizers
from numpy.typing import NDArray

from bench_protocol.catalogue import layers
from bench_protocol.catalogue.seeded import Weights, weights_of
from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop, Workload
from bench_protocol.payload.witness import TrainedTensor, trained_tensors
from bench_protocol.training.reading import mean_square, restarted

from .keras_layers import layer_of

# Keras' names of running statistics.
OWN_NAMES = {"mean": "moving_mean", "variance": "moving_variance"}


def build(workload: Workload, weights: Weights, *, safe: bool = False) -> Any:
    """Build the ``keras.Sequential`` from (batch, *sample_shape) to logits (batch, classes), for
    tokens (batch, steps, classes); ``model.layers[i]`` is ``workload.layers[i]``.

    ``weights``: float32, in the layouts of ``catalogue.layers``, which are Keras' own. ``safe``:
    add biases so that no fusion of product, bias and activation can match.
    """
    data_set = workload.data_set
    built = [
        _block(layer, shape, values, safe)
        if isinstance(layer, layers.Residual)
        else layer_of(layer, safe)
        for layer, shape, values in zip(workload.layers, workload.shapes[:-1], weights, strict=True)
    ]
    inputs = keras.Input(data_set.sample_shape, dtype="int32" if data_set.tokens else None)
    model = keras.Sequential([inputs, *built], name="workload")
    for index, (layer, values) in enumerate(zip(built, weights, strict=True)):
        if values and not isinstance(workload.layers[index], layers.Residual):
            layer.set_weights([np.asarray(value) for value in values.values()])
        layer.trainable = index >= workload.frozen_layers
    return model


def trained_parameters(workload: Workload, model: Any) -> Iterator[NDArray[np.float32]]:
    """The trained weights of a built model, in the catalogue's order; layouts are Keras' own."""
    for tensor in trained_tensors(workload):
        yield np.asarray(_weight(model, tensor).value.numpy(), np.float32)


def set_trained(workload: Workload, model: Any, weights: Weights) -> None:
    """Give a built model other weights, in place; frozen layers keep theirs."""
    for tensor in trained_tensors(workload):
        _weight(model, tensor).assign(weights[tensor.index][tensor.name])


def _weight(model: Any, tensor: TrainedTensor) -> Any:
    layer = model.layers[tensor.index]
    if prefix := tensor.name.rpartition(".")[0]:
        layer = layer.get_layer(prefix)
    own_name = OWN_NAMES.get(tensor.own_name, tensor.own_name)
    return getattr(getattr(layer, "cell", layer), own_name)


def _block(block: layers.Residual, shape: layers.Shape, values: Any, safe: bool) -> Any:

    def branch(x: Any, parts: list[layers.Part]) -> Any:
        for part in parts:
            layer = layer_of(part.layer, safe)
            layer.name = part.prefix.removesuffix(".")
            x = layer(x)
            if layer_values := weights_of(part, values):
                layer.set_weights(list(layer_values.values()))
        return x

    inputs = keras.Input(shape)
    main = branch(inputs, block.branch("main", shape))
    shortcut = branch(inputs, block.branch("shortcut", shape))
    total = keras.layers.Add()([main, shortcut])
    return keras.Model(
        inputs, total if block.activation == "linear" else keras.layers.ReLU()(total)
    )


class DecayedSGD(optimizers.SGD):  # type: ignore[misc]
    """SGD with decay as a part of the gradient; Keras' own decay leaves the momentum out."""

    def __init__(self, settings: SGD) -> None:
        super().__init__(settings.learning_rate, momentum=settings.momentum)
        self._decay = settings.weight_decay

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        super().update_step(gradient + self._decay * variable, variable, learning_rate)


def optimizer(settings: Optimizer, variables: Sequence[Any]) -> Any:
    """Keras' optimiser of some variables with every hyper-parameter stated."""
    match settings:
        case RMSprop():
            return optimizers.RMSprop(
                settings.learning_rate, rho=settings.rho, epsilon=settings.epsilon
            )
        case Adam():
            made = optimizers.Adam(
                settings.learning_rate,
                beta_1=settings.beta_1,
                beta_2=settings.beta_2,
                epsilon=settings.epsilon,
                # As the catalogue's: before the update, by the plain learning rate.
                weight_decay=settings.weight_decay or None,
            )
            if settings.weight_decay:
                made.exclude_from_weight_decay([v for v in variables if len(v.shape) < 2])
            return made
        case SGD(weight_decay=0):
            return optimizers.SGD(settings.learning_rate, momentum=settings.momentum)
        case SGD():
            return DecayedSGD(settings)


def switch_dropout(workload: Workload, model: Any, drops: bool) -> None:
    """Give a model's dropout layers their rates, or the rate 0, which passes on the values."""
    for layer, keras_layer in zip(workload.layers, model.layers, strict=True):
        if isinstance(layer, layers.Dropout):
            keras_layer.rate = layer.rate if drops else 0.0


def restart(optimizer: Any, first: bool = False) -> None:
    """Set an optimiser's state for a restart; a dynamic loss scale starts again."""
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    for variable in inner.variables:
        if variable is inner.iterations:
            variable.assign(restarted(int(variable.numpy()), first))
        elif variable.name.endswith("_momentum"):
            variable.assign(variable * 0)
        elif variable.name.endswith("_velocity"):  # Keras' name of a mean square
            variable.assign(variable * 0 + mean_square(first))
    if inner is not optimizer:
        optimizer.step_counter.assign(0)
        optimizer.dynamic_scale.assign(optimizer.initial_scale)
