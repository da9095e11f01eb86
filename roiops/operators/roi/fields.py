"""Fields that several ROI operators declare alike."""

from ...errors import ParamError
from ...params import Field, shape

# A bin of more samples than this is a mistake, and would take its time to find out.
MOST_SAMPLES = 1024


class Pair(shape):
    """Two ints for height and width, or one that stands for both. None is another way to write 0."""

    def __init__(self):
        super().__init__(2, repeat=True, none_items=True)
        self.text = "int or tuple of 2 ints"

    def parse(self, value):
        if value is None or value == "None":
            value = 0
        return tuple(item or 0 for item in super().parse(value))

    def format(self, value):
        return str(value[0]) if value[0] == value[1] else super().format(value)


def pooled_size_field(kind, **options):
    """The size of the output grid; 7 stands for (7, 7) where the kind is a pair."""
    if isinstance(kind, shape) and not kind.repeat:
        kind = shape(2, repeat=True)
    return Field(kind, range=(1, None), doc="output grid (height, width)", **options)


def scale_field(high=1):
    return Field(float, range=(0, high), doc="feature-map pixels per image pixel")


def samples_field(default, *aliases):
    return Field(
        Pair(),
        default,
        range=(None, MOST_SAMPLES),
        aliases=aliases,
        doc="samples of a bin on each axis; 0 or less: one a feature-map pixel, rounded up",
    )


def caffe_names(given: dict, operator: str) -> dict:
    """Caffe's ``pooled_h`` and ``pooled_w`` as ``pooled_size``, with Caffe's default scale."""
    names = [name for name in ("pooled_h", "pooled_w") if name in given]
    if not names:
        return given
    if "pooled_size" in given:
        raise ParamError(f"{operator}: {names[0]} is another name for part of pooled_size; give one of them")
    if len(names) == 1:
        raise ParamError(f"{operator}: pooled_h and pooled_w go together, got only {names[0]}")
    rest = {name: value for name, value in given.items() if name not in names}
    return {"spatial_scale": 1.0, **rest, "pooled_size": (given["pooled_h"], given["pooled_w"])}


POSITION_SENSITIVE_DOCS = {
    "output_dim": "channels of the output",
    "group_size": "groups of bins on each axis, each with score maps of its own; 0: as many as bins",
}
