"""A Keras model from a workload's layer list, with the seeded weights in it."""

from collections.abc import Iterator
from typing import Any, assert_never

import keras
import numpy as np
import tensorflow as tf
from keras import activations, optimizers
from numpy.typing import NDArray

from bench_protocol.catalogue import layers
from bench_protocol.catalogue.seeded import Weights, weights_of
from bench_protocol.catalogue.workloads import SGD, Adam, Optimizer, RMSprop, Workload
from bench_protocol.payload.witness import TrainedTensor, trained_tensors
from bench_protocol.training.reading import mean_square, restarted


def build(workload: Workload, weights: Weights, *, safe: bool = False) -> Any:
    """Build the ``keras.Sequential`` from (batch, *sample_shape) to logits (batch, classes);
    ``model.layers[i]`` is ``workload.layers[i]``.

    ``weights``: float32, in the layouts of ``catalogue.layers``, which are Keras' own. ``safe``:
    add biases so that no fusion of product, bias and activation can match.
    """
    shape = workload.data_set.sample_shape
    built = [
        _block(layer, inputs, values, safe)
        if isinstance(layer, layers.Residual)
        else _layer(layer, safe)
        for layer, inputs, values in zip(
            workload.layers, workload.shapes[:-1], weights, strict=True
        )
    ]
    model = keras.Sequential([keras.Input(shape), *built], name="workload")
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
    return getattr(getattr(layer, "cell", layer), tensor.own_name)


def _block(block: layers.Residual, shape: layers.Shape, values: Any, safe: bool) -> Any:

    def branch(x: Any, parts: list[layers.Part]) -> Any:
        for part in parts:
            layer = _layer(part.layer, safe)
            layer.name = part.prefix.removesuffix(".")
            x = layer(x)
            if layer_values := weights_of(part, values):
                layer.set_weights(list(layer_values.values()))
        return x

    inputs = keras.Input(shape)
    main = branch(inputs, block.branch("main", shape))
    shortcut = branch(inputs, block.branch("shortcut", shape))
    return keras.Model(inputs, keras.layers.ReLU()(keras.layers.Add()([main, shortcut])))


def optimizer(settings: Optimizer) -> Any:
    """Keras' optimiser with every hyper-parameter stated."""
    match settings:
        case RMSprop():
            return optimizers.RMSprop(
                settings.learning_rate, rho=settings.rho, epsilon=settings.epsilon
            )
        case Adam():
            return optimizers.Adam(
                settings.learning_rate,
                beta_1=settings.beta_1,
                beta_2=settings.beta_2,
                epsilon=settings.epsilon,
            )
        case SGD():
            return optimizers.SGD(settings.learning_rate, momentum=settings.momentum)


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


def dense_product(x: Any, kernel: Any, bias: Any) -> Any:
    """``x @ kernel + bias`` for the safe layers, float32 (batch, units).

    tensorflow-metal fuses MatMul, BiasAdd and Relu into a wrong operation. Its matcher does not
    recognise a two-dimensional bias in a plain addition.
    """
    return tf.raw_ops.AddV2(x=tf.matmul(x, kernel), y=tf.reshape(bias, (1, -1)))


def convolution(x: Any, kernel: Any, bias: Any, stride: int, padding: str) -> Any:
    """Convolution and bias for the safe layers, channels-last; as :func:`dense_product`."""
    product = tf.nn.conv2d(x, kernel, strides=stride, padding=padding.upper())
    return tf.raw_ops.AddV2(x=product, y=tf.reshape(bias, (1, 1, 1, -1)))


class FixedNormalisation(keras.layers.BatchNormalization):  # type: ignore[misc]
    """Batch normalisation in inference mode, also while training."""

    def __init__(self, activation: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.activation = activations.get(activation)

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        return self.activation(super().call(inputs, training=False, mask=mask))


class SafeDense(keras.layers.Dense):  # type: ignore[misc]
    def call(self, inputs: Any, training: Any = None) -> Any:
        return self.activation(dense_product(inputs, self.kernel, self.bias))


class SafeConv2D(keras.layers.Conv2D):  # type: ignore[misc]
    def call(self, inputs: Any) -> Any:
        return self.activation(
            convolution(inputs, self.kernel, self.bias, self.strides[0], self.padding)
        )


def _layer(layer: layers.PlainLayer, safe: bool) -> Any:
    match layer:
        case layers.Conv2D():
            kind = SafeConv2D if safe else keras.layers.Conv2D
            return kind(
                layer.filters,
                layer.kernel,
                strides=layer.stride,
                padding=layer.padding,
                activation=layer.activation,
            )
        case layers.MaxPool2D():
            return keras.layers.MaxPooling2D(layer.size, strides=layer.stride, padding="valid")
        case layers.ZeroPad2D():
            return keras.layers.ZeroPadding2D(layer.size)
        case layers.GlobalAveragePool2D():
            return keras.layers.GlobalAveragePooling2D()
        case layers.BatchNorm():
            return FixedNormalisation(layer.activation, epsilon=layer.epsilon)
        case layers.Flatten():
            return keras.layers.Flatten()
        case layers.Dropout():
            return keras.layers.Dropout(layer.rate)
        case layers.Dense():
            kind = SafeDense if safe else keras.layers.Dense
            return kind(layer.units, activation=layer.activation)
        case layers.LSTM():
            return keras.layers.LSTM(layer.units)
        case layers.Embedding() | layers.LayerNorm() | layers.CausalAttention():
            raise LookupError(f"the engine has no layer {layer.kind}")
        case _:
            assert_never(layer)
