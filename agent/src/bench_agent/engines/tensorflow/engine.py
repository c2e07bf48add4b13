"""TensorFlow with Keras 3: Metal through tensorflow-metal, CUDA, CPU."""

import os
import sys
from typing import Any, Literal

from bench_protocol.catalogue.matrix import Cell, DeviceKind
from bench_protocol.catalogue.seeded import Weights
from bench_protocol.catalogue.workloads import Workload

from ...base.messages import FoundDevice
from ...base.precisions import COMPUTE_TYPES
from ..common import FRAMEWORK_SEED, Framework
from ..seam import Data, Engine, Products, Session

GRAPH, XLA = "graph", "xla"
THREADS = "TF_NUM_INTRAOP_THREADS"
PLACE = {"cpu": "/CPU:0", "cuda": "/GPU:0", "metal": "/GPU:0"}


class TensorFlow(Framework):
    name = "tensorflow"
    import_name = "tensorflow"
    distributions: tuple[str, ...] = ("tensorflow", "tensorflow-cpu", "tensorflow-metal", "keras")

    def __init__(self) -> None:
        self.form = GRAPH
        self._place = PLACE["cpu"]
        self._compute = COMPUTE_TYPES["float32"]
        self._chains = 1
        self._layers: Literal["stock", "safe"] | None = None

    def forms(self, cell: Cell) -> tuple[str, ...]:
        on_cuda = cell.recipe == "tuned" and cell.device.kind == "cuda"
        return (GRAPH, XLA) if on_cuda else ()

    def load(self, workload: Workload, cell: Cell) -> None:
        """Import TensorFlow and Keras and leave only one device visible."""
        # Keras reads it when it is imported.
        os.environ["KERAS_BACKEND"] = "tensorflow"
        device, precision = cell.device, cell.precision
        import tensorflow as tf

        gpus = tf.config.list_physical_devices("GPU")
        if device.kind == "cpu":
            tf.config.set_visible_devices([], "GPU")
        else:
            if device.kind != _gpu_kind() or device.index >= len(gpus):
                raise LookupError(f"TensorFlow sees no device {device}; it sees {len(gpus)} GPUs")
            tf.config.set_visible_devices(gpus[device.index], "GPU")
            tf.config.experimental.set_memory_growth(gpus[device.index], True)
        tf.config.experimental.enable_tensor_float_32_execution(precision == "tf32")
        self._compute = COMPUTE_TYPES[precision]
        self._place = PLACE[device.kind]
        # Imported here so that its time counts as import, not as building.
        import keras

        keras.config.set_floatx("float32")
        if device.kind == "cpu" and cell.recipe == "tuned":
            from . import units

            self._chains = units.chains(workload, cell.batch_size)

    def devices(self) -> list[FoundDevice]:
        os.environ["KERAS_BACKEND"] = "tensorflow"
        import tensorflow as tf

        devices = [
            FoundDevice(
                kind=_gpu_kind(),
                index=index,
                name=_gpu_name(gpu),
                compute_capability=_compute_capability(gpu),
            )
            for index, gpu in enumerate(tf.config.list_physical_devices("GPU"))
        ]
        return [*devices, FoundDevice(kind="cpu", index=0, name="CPU")]

    def libraries(self) -> dict[str, str]:
        import tensorflow as tf

        build = tf.sysconfig.get_build_info()
        names = {"cuda": "cuda_version", "cudnn": "cudnn_version"}
        versions = {name: str(build[key]) for name, key in names.items() if build.get(key)}
        try:
            from tensorflow.python.util import _pywrap_util_port as port

            versions["onednn"] = "on" if port.IsMklEnabled() else "off"
        except (ImportError, AttributeError):  # no public way to ask
            versions["onednn"] = "unknown"
        return versions

    def settings(self) -> dict[str, str]:
        import tensorflow as tf

        threading = tf.config.threading
        return {
            # 0 means as many as there are cores.
            "tf_intra_op_threads": os.environ.get(
                THREADS, str(threading.get_intra_op_parallelism_threads())
            ),
            "tf_inter_op_threads": str(threading.get_inter_op_parallelism_threads()),
            "tf_tensor_float_32": str(
                tf.config.experimental.tensor_float_32_execution_enabled()
            ).lower(),
        }

    def products(self, size: int) -> Products:
        from .products import TensorFlowProducts

        # As many parts as cores share a step.
        return TensorFlowProducts(size, self._place, self._compute, self._chains)

    def open(self, workload: Workload, cell: Cell, weights: Weights, data: Data) -> Session:
        import keras
        import tensorflow as tf

        from . import keras_model
        from .fit import FitSession
        from .shared import Built
        from .steps import StepsSession

        keras.utils.set_random_seed(FRAMEWORK_SEED)
        mixed = cell.precision.startswith("mixed_")
        keras.mixed_precision.set_dtype_policy(cell.precision if mixed else "float32")
        with tf.device(self._place):
            layers = self._right_layers(cell)
            model = keras_model.build(workload, weights, safe=layers == "safe")
            built = Built(workload, cell, data, model, layers, self._place)
            if cell.recipe != "tuned":
                return FitSession(built)
            return StepsSession(
                built,
                # The plug-in's own fused kernels have not been tried on a Mac.
                fused_updates=cell.device.kind != "metal",
                xla=self.form == XLA,
                indices="int64" if cell.device.kind == "cuda" else "int32",
            )

    def _right_layers(self, cell: Cell) -> Literal["stock", "safe"]:
        if cell.device.kind != "metal":
            return "stock"
        if self._layers is None:
            from . import metal_probe

            forms = metal_probe.forms(tuned=cell.recipe == "tuned")
            self._layers = metal_probe.right_form(forms)
        return self._layers


def _gpu_kind() -> DeviceKind:
    return "metal" if sys.platform == "darwin" else "cuda"


def _gpu_name(gpu: Any) -> str:
    import tensorflow as tf

    details = tf.config.experimental.get_device_details(gpu)
    return str(details.get("device_name", gpu.name))[:200]


def _compute_capability(gpu: Any) -> str | None:
    import tensorflow as tf

    version = tf.config.experimental.get_device_details(gpu).get("compute_capability")
    return "{}.{}".format(*version) if version else None


ENGINE: Engine = TensorFlow()
