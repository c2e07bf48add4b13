"""An LSTM for CPUs: time steps unrolled, and the batch cut into chains that run side by side.

The time steps of an LSTM follow each other and each is a small product that a processor's cores
share badly. The samples of a batch do not depend on each other: cut into as many chains as there
are cores, each core works through its own. The sum of the chains' gradients is the batch's.
"""

from typing import Any

from ._common import available_cores

# Fewer samples than this in a chain make its products too small.
SMALLEST_CHAIN = 32
MOST_CHAINS = 8


def chains(batch_size: int) -> int:
    """Into how many equal chains to cut a batch; 1 leaves it whole."""
    most = max(1, min(available_cores(), batch_size // SMALLEST_CHAIN, MOST_CHAINS))
    return max(count for count in range(1, most + 1) if batch_size % count == 0)


def lstm(x: Any, kernel: Any, recurrent_kernel: Any, bias: Any, *, chains: int) -> Any:
    """Last output of an LSTM.

    Args:
        x: float32 (batch, steps, features).
        kernel: (features, 4 units), gates i, f, g, o.
        recurrent_kernel: (units, 4 units).
        bias: (4 units,).

    Returns:
        float32 (batch, units).
    """
    import tensorflow as tf

    parts = tf.split(x, chains, axis=0) if chains > 1 else [x]
    outputs = [_chain(part, kernel, recurrent_kernel, bias) for part in parts]
    return tf.concat(outputs, axis=0) if chains > 1 else outputs[0]


def _chain(x: Any, kernel: Any, recurrent_kernel: Any, bias: Any) -> Any:
    import tensorflow as tf

    samples, steps, features = x.shape
    by_step = tf.reshape(tf.transpose(x, (1, 0, 2)), (steps * samples, features))
    inputs = tf.nn.bias_add(tf.matmul(by_step, kernel), bias)
    inputs = tf.unstack(tf.reshape(inputs, (steps, samples, kernel.shape[1])))
    cell = output = None
    for gates in inputs:
        if output is not None:
            gates = gates + tf.matmul(output, recurrent_kernel)
        i, f, g, o = tf.split(gates, 4, axis=1)
        new = tf.sigmoid(i) * tf.tanh(g)
        cell = new if cell is None else tf.sigmoid(f) * cell + new
        output = tf.sigmoid(o) * tf.tanh(cell)
    return output
