"""Records: frozen dataclasses that share their functions.

The decorator `dataclass` compiles five functions a class, of which a start would pay for hundreds.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from inspect import Parameter, Signature
from operator import attrgetter
from typing import Any, ClassVar, dataclass_transform


class _SignatureOfFields:
    """The `__signature__` of a class of records, made when it is examined."""

    def __get__(self, record: object, kind: type[Record]) -> Signature:
        parameters = []
        for part in fields(kind):
            form = Parameter.KEYWORD_ONLY if part.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            factory = Parameter.empty if part.default_factory is MISSING else part.default_factory
            default = factory if part.default is MISSING else part.default
            parameters.append(Parameter(part.name, form, default=default, annotation=part.type))
        return Signature(sorted(parameters, key=lambda parameter: parameter.kind))


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record:
    """Base of frozen dataclasses, which need no decorator.

    Parameters
    ----------
    eq : bool
        Of a class: whether records are equal whose fields are, as far as they are compared; else each equals
        itself alone.

    Notes
    -----
    `dataclasses.fields`, `replace` and their like take records. `__post_init__`, `InitVar` and
    ``field(init=False)`` are not known.
    """

    __match_args__: ClassVar[tuple[str, ...]] = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    __signature__: ClassVar[Any] = _SignatureOfFields()
    _names: ClassVar[frozenset[str]] = frozenset()
    _compared: ClassVar[Any] = staticmethod(lambda record: ())

    def __init_subclass__(cls, eq: bool = True) -> None:
        super().__init_subclass__()
        dataclass(init=False, repr=False, eq=False)(cls)
        cls._names = frozenset(part.name for part in fields(cls))
        compared = [part.name for part in fields(cls) if part.compare]
        if compared:
            cls._compared = staticmethod(attrgetter(*compared))
        if not eq:
            for name in ("__eq__", "__hash__"):
                setattr(cls, name, getattr(object, name))

    def __init__(self, *values: Any, **named: Any) -> None:
        own = self.__dict__
        own.update(zip(self.__match_args__, values, strict=False))
        own.update(named)
        if len(own) != len(values) + len(named) or own.keys() != self._names:
            self._complete(len(values) + len(named))

    def _complete(self, given: int) -> None:
        """Give fields their defaults; refuse values of no field, or of one twice, and fields without any."""
        own, kind = self.__dict__, type(self).__name__
        if len(own) != given or not own.keys() <= self._names:
            raise TypeError(f"{kind} takes each of its fields once: {', '.join(sorted(self._names))}")
        for part in fields(self):
            if part.name in own:
                continue
            if part.default is not MISSING:
                own[part.name] = part.default
            elif part.default_factory is not MISSING:
                own[part.name] = part.default_factory()
            else:
                raise TypeError(f"{kind} lacks its field {part.name}")

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return bool(self._compared(self) == self._compared(other))

    def __hash__(self) -> int:
        return hash(self._compared(self))

    def __repr__(self) -> str:
        shown = (f"{part.name}={getattr(self, part.name)!r}" for part in fields(self) if part.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"
