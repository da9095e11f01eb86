"""Fields and windows that several operators declare alike."""

from ..errors import ParamError
from ..params import Field, Parameter, enum, optional, shape

IGNORED = "accepted and ignored: it steers MXNet's GPU library"


def axes_field(least: int, doc: str, axes: tuple = (1, 2, 3)) -> Field:
    """A parameter with a number for each spatial axis, ``least`` or more, or none at all."""
    return Field(shape((0, *axes)), (), range=(least, None), doc=doc)


def layout_field(doc: str) -> Field:
    """A parameter that says in which order the axes of images are."""
    return Field(optional(enum("NCW", "NCHW", "NCDHW", "NWC", "NHWC", "NDHWC")), None, doc=doc)


class Window(Parameter):
    """What convolutions and poolings share: a window that slides over one to three spatial axes."""

    def axes(self, given: tuple, fill: int) -> tuple:
        """A per-axis parameter, with ``fill`` for every axis when it was not given."""
        return given or (fill,) * len(self.kernel)

    @property
    def strides(self) -> tuple:
        return self.axes(self.stride, 1)

    @property
    def dilations(self) -> tuple:
        return self.axes(self.dilate, 1)

    @property
    def pads(self) -> tuple:
        return self.axes(self.pad, 0)

    @property
    def spans(self) -> tuple:
        """Pixels from one end of the dilated window to the other."""
        return tuple(gap * (count - 1) + 1 for count, gap in zip(self.kernel, self.dilations, strict=True))

    def validate(self, operator):
        for name in () if getattr(self, "global_pool", False) else self.per_axis:
            given = getattr(self, name)
            if given and len(given) != len(self.kernel):
                raise ParamError(
                    f"{operator}: {name} must have as many entries as kernel {self.kernel}, got {given}"
                )
        self.check_layout(operator)

    per_axis = ("stride", "dilate", "pad")

    def check_layout(self, operator):
        layouts = LAYOUTS.get(len(self.kernel), ())
        if self.layout is not None and self.kernel and self.layout not in layouts:
            raise ParamError(
                f"{operator}: layout must be {' or '.join(layouts)} for kernel {self.kernel}, "
                f"got {self.layout!r}"
            )

    @property
    def channels_last(self) -> bool:
        return self.layout is not None and self.layout.endswith("C")


LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
