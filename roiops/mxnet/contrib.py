"""``mx.contrib``: the operators of ``sym.contrib`` and ``nd.contrib`` under MXNet's older names."""

from .. import autograd  # MXNet's autograd before 1.0 had these functions already
from ..errors import without
from ..graph.functions import contrib as symbol
from ..ndarray import contrib as ndarray
from .absent import ABSENT, Absent

nd = ndarray
sym = symbol

__all__ = ["amp", "autograd", "nd", "ndarray", "onnx", "quantization", "sym", "symbol", "tensorboard", "text"]


amp = Absent(
    "contrib.amp",
    "automatic mixed precision is not offered; train in float32, or cast the whole network: "
    "net.cast('float16')",
)
vars(amp)["amp"] = amp  # scripts import it from either
quantization = Absent(
    "contrib.quantization", "quantisation is not offered; run the network in float32 or in float16"
)
onnx = Absent("contrib.onnx", ABSENT["onnx"])
tensorboard = Absent("contrib.tensorboard", "write what a batch_end_callback is given to a log of your own")
text = Absent("contrib.text", "vocabularies and embeddings of words are not offered")

__getattr__ = without(
    "contrib",
    {
        "io": "mx.mod.Module takes batches of a DataIter; Gluon's DataLoader is for a loop of your own",
        "svrg_optimization": "use mx.mod.Module with an optimizer of mx.optimizer",
        "tensorrt": "convert the model by `roiops convert` and give the ONNX file to TensorRT",
    },
)
