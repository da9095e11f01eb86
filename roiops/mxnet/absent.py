"""Parts of MXNet that are not here, and what to do instead."""

__all__ = ["ABSENT", "advice_for"]

#: Parts of MXNet that are not here, and what to do about it.
ABSENT = {
    "np": "arrays are those of mxnet.nd",
    "npx": "arrays are those of mxnet.nd",
    "profiler": "`roiops bench MODEL --operators` times the operators of a model",
    "rtc": "CUDA source is not compiled; operators of one's own are Python, as mxnet.operator.CustomOp",
}


def advice_for(name: str, package: str = "mxnet") -> str:
    """The text of the error for a part of MXNet that is not here."""
    advice = ABSENT.get(name.split(".")[0])
    stands_in = ", which stands in for mxnet," if package == "mxnet" else ""
    what = f"{package}.{name}: roiops{stands_in} has no {name}"
    return f"{what}: {advice}" if advice else what
