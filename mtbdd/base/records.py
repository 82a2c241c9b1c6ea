"""Records: dataclasses that share their functions, frozen unless their class says otherwise.

The decorator `dataclass` compiles five functions a class, of which a start would pay for hundreds.
"""

from __future__ import annotations

from collections.abc import Callable, KeysView
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

if TYPE_CHECKING:
    from inspect import Signature


class _SignatureOfFields:
    """The `__signature__` of a class of records, made when it is examined."""

    def __get__(self, record: object, kind: type[Record]) -> Signature:
        from inspect import Parameter, Signature

        parameters = []
        for part in fields(kind):
            form = Parameter.KEYWORD_ONLY if part.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            factory = Parameter.empty if part.default_factory is MISSING else part.default_factory
            default = factory if part.default is MISSING else part.default
            parameters.append(Parameter(part.name, form, default=default, annotation=part.type))
        return Signature(sorted(parameters, key=lambda parameter: parameter.kind))


class _Fields:
    """The `__dataclass_fields__` of a class of records, made when they are examined."""

    def __get__(self, record: object, kind: type[Record]) -> dict[str, Field[Any]]:
        _made_dataclass(kind)
        return kind.__dataclass_fields__


def _is_described(default: object) -> bool:
    """Return whether `dataclass` has to examine the default of a field, which it may refuse."""
    return isinstance(default, Field) or default.__class__.__hash__ is None


def _made_dataclass(kind: type[Record]) -> None:
    """Have `dataclass` find the fields of a class, which take the place of `_Fields`."""
    dataclass(init=False, repr=False, eq=False)(kind)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record:
    """Base of frozen dataclasses, which need no decorator.

    `eq`: of a class: whether records are equal whose fields are, as far as they are compared; else each
    equals itself alone. `frozen`: of a class: whether fields keep their values. `dataclasses.fields`,
    `replace` and their like take records. `InitVar` and ``field(init=False)`` are not known.
    """

    __match_args__: ClassVar[tuple[str, ...]] = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    __signature__: ClassVar[Any] = _SignatureOfFields()
    _names: ClassVar[KeysView[str]] = {}.keys()
    _compared_names: ClassVar[tuple[str, ...]] = ()
    _compared: ClassVar[Any] = staticmethod(lambda record: ())
    _factories: ClassVar[dict[str, Callable[[], Any]]] = {}

    def __init_subclass__(cls, eq: bool = True, frozen: bool = True) -> None:
        super().__init_subclass__()
        own = [
            name for name, kind in cls.__annotations__.items() if "ClassVar" not in str(kind).split("[")[0]
        ]
        if any(_is_described(cls.__dict__.get(name)) for name in own):
            _made_dataclass(cls)
            parts = fields(cls)
            cls._names = dict.fromkeys(part.name for part in parts).keys()
            cls._compared_names = tuple(part.name for part in parts if part.compare)
            cls._factories = {
                part.name: part.default_factory for part in parts if part.default_factory is not MISSING
            }
        else:
            # What `dataclass` would find, at a tenth of its time.
            type.__setattr__(cls, "__match_args__", tuple(dict.fromkeys((*cls.__match_args__, *own))))
            cls._names = dict.fromkeys((*cls._names, *own)).keys()
            cls._compared_names = tuple(dict.fromkeys((*cls._compared_names, *own)))
            cls.__dataclass_fields__ = _Fields()  # type: ignore[assignment]
        if cls._compared_names:
            cls._compared = staticmethod(attrgetter(*cls._compared_names))
        if "__post_init__" in cls.__dict__:
            cls.__init__ = _init_and_check  # type: ignore[method-assign]
        if not frozen:
            cls.__setattr__, cls.__delattr__ = object.__setattr__, object.__delattr__  # type: ignore[assignment]
            cls.__hash__ = None  # type: ignore[assignment]
        if not eq:
            for name in ("__eq__", "__hash__"):
                setattr(cls, name, getattr(object, name))

    def __init__(self, *values: Any, **named: Any) -> None:
        own = self.__dict__
        own.update(zip(self.__match_args__, values, strict=False))
        if not named and len(values) == len(own) == len(self._names):
            return  # each field by its place
        own.update(named)
        if len(own) != len(values) + len(named) or own.keys() != self._names:
            self._complete(len(values) + len(named))

    def _complete(self, given: int) -> None:
        """Give fields their defaults; refuse values of no field, or of one twice, and fields without any."""
        own, kind = self.__dict__, type(self)
        if len(own) != given or not own.keys() <= self._names:
            named = ", ".join(sorted(self._names))
            raise TypeError(f"{kind.__name__} takes each of its fields once: {named}")
        for name in self._names:
            if name in own:
                continue
            if name in self._factories:
                own[name] = self._factories[name]()
            elif hasattr(kind, name):
                own[name] = getattr(kind, name)
            else:
                raise TypeError(f"{kind.__name__} lacks its field {name}")

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


def _init_and_check(self: Any, *values: Any, **named: Any) -> None:
    """Be the `__init__` of records that have a `__post_init__`."""
    Record.__init__(self, *values, **named)
    self.__post_init__()
