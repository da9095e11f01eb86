"""A struct of declared fields: the parameters of one operator."""

from ..errors import ParamError, nearest
from .field import REQUIRED, Field

__all__ = ["Parameter"]


class Parameter:
    """Base of parameter structs. A subclass declares its fields as class attributes::

        class ROIPoolingParam(Parameter):
            pooled_size = Field(shape(2), nonzero=True, doc="output grid (height, width)")
            spatial_scale = Field(float, range=(0, 1), doc="feature-map pixels per image pixel")

    Instances are immutable, comparable and hashable. ``ROIPoolingParam(pooled_size="(7,7)", ...)`` takes
    Python values or MXNet's strings; :meth:`to_strings` gives MXNet's strings back.
    """

    __slots__ = ("_values",)
    fields: dict[str, Field] = {}

    def __init_subclass__(cls):
        fields = dict(cls.fields)
        for name, value in list(vars(cls).items()):
            if isinstance(value, Field):
                if value.fault:
                    raise ParamError(f"{cls.__name__}.{name}: {value.fault}")
                value.name = name
                fields[name] = value
                delattr(cls, name)
        cls.fields = fields
        cls.__doc__ = cls.__doc__ or f"The parameters {', '.join(fields)}."
        cls._aliases = {alias: name for name, field in fields.items() for alias in field.aliases}

    _aliases: dict[str, str] = {}

    def __init__(self, *, operator: str | None = None, **given):
        operator = operator or type(self).__name__
        given = self.translate(self._rename(given, operator), operator)
        for name in given:
            if name not in self.fields:
                raise ParamError(
                    f"{operator}: unknown parameter {name!r}{nearest(name, self.fields)} "
                    f"(it takes: {', '.join(self.fields) or 'none'})"
                )
        values = {}
        for name, field in self.fields.items():
            value = given.get(name, REQUIRED)
            if value is REQUIRED:
                if field.required:
                    raise ParamError(f"{operator}: parameter {name} is required: {field.need} ({field.doc})")
                values[name] = field.default
                continue
            try:
                values[name] = field.parse(value)
            except ValueError:
                advice = field.kind.advice(value)
                raise ParamError(f"{operator}: {name} must be {field.need}, got {value!r}{advice}") from None
        object.__setattr__(self, "_values", values)
        self.validate(operator)

    @classmethod
    def _rename(cls, given: dict, operator: str) -> dict:
        renamed = {}
        for name, value in given.items():
            target = cls._aliases.get(name, name)
            if target in renamed or (target != name and target in given):
                raise ParamError(f"{operator}: {name} is another name of {target}; give one of them")
            renamed[target] = value
        return renamed

    @classmethod
    def translate(cls, given: dict, operator: str) -> dict:
        """Hook: turn parameters that other frameworks spell otherwise into the declared ones."""
        return given

    def validate(self, operator: str) -> None:
        """Hook: raise :class:`ParamError` where values that are each fine do not go together."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no parameter {name!r}") from None

    def __setattr__(self, name, value):
        raise AttributeError(f"{type(self).__name__} is immutable; use replace({name}=...)")

    def replace(self, **changes):
        """A copy with some values changed."""
        return type(self)(**{**self._values, **changes})

    def to_dict(self) -> dict:
        """The values by name."""
        return dict(self._values)

    def to_strings(self, *, defaults: bool = False) -> dict[str, str]:
        """MXNet's string for each value, those equal to their default left out unless ``defaults``."""
        return {
            name: field.format(self._values[name])
            for name, field in self.fields.items()
            if defaults or field.required or self._values[name] != field.default
        }

    def __eq__(self, other):
        return type(self) is type(other) and self._values == other._values

    def __hash__(self):
        return hash((type(self), tuple(self._values.values())))

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"

    def __reduce__(self):
        return _rebuild, (type(self), self._values)

    def __dir__(self):
        return [*super().__dir__(), *self.fields]


def _rebuild(cls, values):
    return cls(**values)
