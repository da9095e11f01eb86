"""Parts of MXNet that are not here, and what to do instead."""

import types

from ..errors import NotOfferedError

__all__ = ["ABSENT", "OFTEN_IMPORTED", "Absent", "advice_for"]

#: Parts of MXNet that are not here, and what to do about it.
ABSENT = {
    "error": "exceptions are those of mxnet.base, roiops.errors has the rest",
    "kvstore_server": "processes are equals here; mpiexec starts them",
    "libinfo": "there is no C library; `roiops doctor` says what is there",
    "library": "no C++ is loaded; operators of one's own are Python, as mxnet.operator.CustomOp",
    "notebook": "callbacks that draw are not offered; mxnet.callback has those that log",
    **dict.fromkeys(("np", "npx", "numpy", "numpy_extension"), "arrays are those of mxnet.nd"),
    **dict.fromkeys(("np_array", "use_np", "use_np_array"), "arrays are those of mxnet.nd"),
    "onnx": "`roiops convert` and roiops.models.to_onnx write ONNX files; none are read",
    "profiler": "`roiops bench MODEL --operators` times the operators of a model",
    "rtc": "CUDA source is not compiled; operators of one's own are Python, as mxnet.operator.CustomOp",
    "runtime": "`roiops doctor` says what is there",
    "th": "modules of Torch's Lua are not called; roiops.torch has the ROI operators for PyTorch",
    "tvmop": "operators of TVM are not loaded",
}
#: Those that scripts import whether or not they use them.
OFTEN_IMPORTED = ("profiler", "rtc", "runtime")


def advice_for(name: str, package: str = "mxnet") -> str:
    """The text of the error for a part of MXNet that is not here."""
    advice = ABSENT.get(name.split(".")[0])
    stands_in = ", which stands in for mxnet," if package == "mxnet" else ""
    what = f"{package}.{name}: roiops{stands_in} has no {name}"
    return f"{what}: {advice}" if advice else what


class Absent(types.ModuleType):
    """A part of MXNet that can be imported, and has nothing but an error."""

    def __init__(self, name, advice):
        super().__init__(f"mxnet.{name}")
        self._advice = advice

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotOfferedError(f"{self.__name__.replace('mxnet', 'mx')}.{name}: {self._advice}")
