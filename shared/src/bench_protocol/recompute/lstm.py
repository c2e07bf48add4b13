"""LSTM: forward pass and back-propagation through time."""

import numpy as np

from .arrays import NOTHING, Array, Passed, Values


def lstm(values: Values, x: Array) -> Passed:
    """Last hidden state of an LSTM that starts at zero (Hochreiter & Schmidhuber 1997, Gers 2000).

    ``i, f, g, o = split(x_t @ kernel + h @ recurrent_kernel + bias)``;
    ``c = sigmoid(f) c + sigmoid(i) tanh(g)``; ``h = sigmoid(o) tanh(c)``.

    Args:
        x: (samples, steps, features).

    Returns:
        Outputs of shape (samples, units) and the backward pass.
    """
    kernel, recurrent = values["kernel"], values["recurrent_kernel"]
    samples, steps, _ = x.shape
    units = len(recurrent)
    inputs = x @ kernel + values["bias"]
    gates = np.empty((steps, samples, 4 * units))
    hidden, cells = np.zeros((2, steps + 1, samples, units))
    for step in range(steps):
        gate = gates[step]
        np.add(inputs[:, step], hidden[step] @ recurrent, out=gate)
        g = np.tanh(gate[:, 2 * units : 3 * units])
        _sigmoid(gate)
        gate[:, 2 * units : 3 * units] = g
        i, f, g, o = np.split(gate, 4, axis=1)
        cells[step + 1] = f * cells[step] + i * g
        hidden[step + 1] = o * np.tanh(cells[step + 1])

    def back(dy: Array, inputs: bool) -> tuple[Array, Values]:
        changes = np.empty_like(gates)
        dh, dc = dy, np.zeros_like(dy)
        for step in reversed(range(steps)):
            i, f, g, o = np.split(gates[step], 4, axis=1)
            bent = np.tanh(cells[step + 1])
            dc = dc + dh * o * (1 - bent**2)
            di, df, dg, do = np.split(changes[step], 4, axis=1)
            di[:] = dc * g * i * (1 - i)
            df[:] = dc * cells[step] * f * (1 - f)
            dg[:] = dc * i * (1 - g**2)
            do[:] = dh * bent * o * (1 - o)
            dc = dc * f
            dh = changes[step] @ recurrent.T
        rows = changes.reshape(-1, 4 * units)
        in_time = x.transpose(1, 0, 2).reshape(len(rows), -1)
        gradients = {
            "kernel": in_time.T @ rows,
            "recurrent_kernel": hidden[:-1].reshape(-1, units).T @ rows,
            "bias": rows.sum(axis=0),
        }
        dx = (changes @ kernel.T).transpose(1, 0, 2) if inputs else NOTHING
        return dx, gradients

    return hidden[-1], back


def _sigmoid(values: Array) -> None:
    """1 / (1 + exp(-z)) in place, as (1 + tanh(z / 2)) / 2, which does not overflow."""
    values *= 0.5
    np.tanh(values, out=values)
    values += 1
    values *= 0.5
