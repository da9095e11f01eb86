"""Fields that several ROI operators declare alike."""

from ...errors import ParamError
from ...params import Field, Parameter, enum, optional, shape
from .dialects import TABLE, dialects_of, find, flags_of, modes_of, rows

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


def pooled_size_field(kind=None, **options):
    """The size of the output grid; 7 stands for (7, 7)."""
    kind = kind or shape(2, repeat=True)
    return Field(kind, range=(1, None), doc="output grid (height, width)", **options)


def scale_field(high=1):
    return Field(float, range=(0, high), doc="feature-map pixels per image pixel")


def output_dim_field():
    return Field(int, range=(1, None), doc="channels of the output")


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


def _words(names) -> str:
    names = list(names)
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def dialect_field(operator):
    """The dialects that ``operator`` has, and whose they are."""
    whose = (
        f"{dialect} ("
        + ", ".join(dict.fromkeys(w for row in rows(operator) if row.dialect == dialect for w in row.whose))
        + ")"
        for dialect in dialects_of(operator)
    )
    known = dialects_of(operator)
    kind = enum(*known, elsewhere=_elsewhere(operator, known))
    return Field(kind, known[0], doc="the framework that it agrees with: " + "; ".join(whose))


def _elsewhere(operator, known) -> dict[str, str]:
    """What to say for a library whose name is no dialect: the calls that give the numbers of its functions.

    They are ``operator``'s, or those of other operators where it computes none of that library's.
    """
    libraries = {function.split()[0].lower() for row in TABLE.values() for function in row.whose}
    told = {}
    for library in libraries - set(known):
        calls = _calls_for(library)
        here = [call for name, call in calls if name == operator]
        told[library] = "; ".join(here or (call for _, call in calls))
    return told


def _calls_for(library) -> list[tuple[str, str]]:
    """Operators and calls such as ``TensorFlow crop_and_resize is CropAndResize(..., mode='bilinear')``."""
    values: dict[tuple, dict[str, list]] = {}
    for row in TABLE.values():
        for function in row.whose:
            if function.split()[0].lower() == library:
                seen = values.setdefault((function, row.operator), {})
                for name, value in row.parameters.items():
                    if value not in seen.setdefault(name, []):
                        seen[name].append(value)
    calls = []
    for (function, operator), seen in values.items():
        given = "".join(f", {name}={' or '.join(map(repr, several))}" for name, several in seen.items())
        calls.append((operator, f"{function} is {operator}(...{given})"))
    return calls


def mode_field(operator, doc="what a bin gives", aliases=()):
    """The modes that ``operator`` has; None is the usual one of a dialect, where that depends on it."""
    by_dialect = {dialect: modes_of(operator, dialect) for dialect in dialects_of(operator)}
    modes = list(dict.fromkeys(mode for known in by_dialect.values() for mode in known))
    usual = {known[0] for known in by_dialect.values()}
    for mode in modes:
        having = [dialect for dialect, known in by_dialect.items() if mode in known]
        if len(having) < len(by_dialect):
            doc += f"; {mode} under {_words(having)} only"
    if len(usual) == 1:
        return Field(enum(*modes), *usual, doc=doc, aliases=aliases)
    defaults = "; ".join(
        f"{mode} under {_words(d for d, known in by_dialect.items() if known[0] == mode)}" for mode in modes
    )
    return Field(optional(enum(*modes)), None, doc=f"{doc}. Left out: {defaults}")


class DialectParam(Parameter):
    """Parameters that choose a row of the table of dialects; ``table`` is the operator's name there."""

    table = ""
    #: Whether MXNet's own dialect, as MXNet has it, refuses a scale above 1, which the others take.
    bounds_mxnets_scale = False
    #: Groups of bins on each axis.
    groups = 1

    @property
    def ratio(self) -> tuple[int, int]:
        """Samples of a bin on each axis; an operator without samples has no say in them."""
        return getattr(self, "sampling_ratio", (0, 0))

    @classmethod
    def translate(cls, given, operator):
        return caffe_names(given, operator)

    @property
    def _dialect(self) -> str:
        return getattr(self, "dialect", "")

    @property
    def row(self):
        """The row of the table."""
        usual = modes_of(self.table, self._dialect)[0]
        flags = flags_of(self.table, self._dialect)
        variant = tuple(flag for flag in flags if getattr(self, flag))
        return find(self.table, self._dialect, getattr(self, "mode", None) or usual, variant)

    def validate(self, operator):
        if self.bounds_mxnets_scale and self._dialect == "mxnet" and self.spatial_scale > 1:
            raise ParamError(
                f"{operator}: spatial_scale must be float in [0, 1] under dialect 'mxnet', "
                f"got {self.spatial_scale:g}"
            )
        mode, known = getattr(self, "mode", None), modes_of(self.table, self._dialect)
        if mode is not None and mode not in known:
            need = " or ".join(repr(word) for word in known)
            raise ParamError(f"{operator}: mode must be {need} under dialect {self._dialect!r}, got {mode!r}")
        for dialect in dialects_of(self.table):
            for flag in flags_of(self.table, dialect):
                unknown = flag not in flags_of(self.table, self._dialect)
                if unknown and getattr(self, flag) and not self.fields[flag].default:
                    raise ParamError(f"{operator}: {flag} is for dialect {dialect!r}, got {self._dialect!r}")
        self.row  # noqa: B018 (raises where there is none)
