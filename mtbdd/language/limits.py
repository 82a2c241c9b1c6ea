"""Limits of what a text may ask for: what is larger is refused with a message instead of filling the machine.

The limits hold for the thread (or task) that sets them, until it leaves the block:

>>> with limited(Limits(bits=2000)):
...     current().bits
2000
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from mtbdd.base.errors import either
from mtbdd.base.records import Record
from mtbdd.language.limit_defaults import DEFAULT_LIMITS


class Limits(Record):
    """Limits on the size of a model's text.

    Attributes
    ----------
    source_bytes : int
        Size of a file.
    tokens : int
        Words, numbers and signs of a model's or a property file's text.
    variables : int
        Variables of a model, renamed modules written out.
    bits : int
        Bits of all variables together.  Decision diagrams are walked by recursion, a few levels a bit: far
        more than 5,000 may not fit a thread's stack.
    commands : int
        Commands of a model, renamed modules written out.
    nodes : int
        Nodes of the expressions that the copies of renamed modules take.
    faults : int
        Faults reported of one text.
    values : int
        Values that a variable, or an expression over variables, may take where its values are distinguished.
    combinations : int
        Ways in which modules may take one action together.
    table_steps : int
        Entries of all tables of values that a model's expressions are worked out in, once an operator.
    pair_steps : int
        Pairs of values, or of sets, that are put together while a model's commands are translated.
    """

    source_bytes: int = DEFAULT_LIMITS["source_bytes"]
    tokens: int = DEFAULT_LIMITS["tokens"]
    variables: int = DEFAULT_LIMITS["variables"]
    bits: int = DEFAULT_LIMITS["bits"]
    commands: int = DEFAULT_LIMITS["commands"]
    nodes: int = DEFAULT_LIMITS["nodes"]
    faults: int = DEFAULT_LIMITS["faults"]
    values: int = DEFAULT_LIMITS["values"]
    combinations: int = DEFAULT_LIMITS["combinations"]
    table_steps: int = DEFAULT_LIMITS["table_steps"]
    pair_steps: int = DEFAULT_LIMITS["pair_steps"]

    def __post_init__(self) -> None:
        """Check that every limit is a positive number."""
        for name, value in vars(self).items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"limit {name}: expected an integer of at least 1, got {value!r}")

    def changed(self, name: str, value: int) -> Limits:
        """Return the limits with one of them changed.

        Raises ValueError: there is no limit of that name, or the value is not positive.
        """
        if name not in DEFAULT_LIMITS:
            raise ValueError(f"unknown limit {name!r}: expected one of {', '.join(DEFAULT_LIMITS)}")
        return replace(self, **{name: value})


_current: ContextVar[Limits | None] = ContextVar("limits", default=None)
_DEFAULT = Limits()


def current() -> Limits:
    """Return the limits that hold here."""
    return _current.get() or _DEFAULT


def raised(name: str, needed: int = 0) -> str:
    """Return how a limit is raised, for a message: the option with a value to type, or the argument.

    `name`: the limit that does not suffice. `needed`: what would suffice, where that is known; twice the
    limit is offered at least.

    Examples
    --------
    >>> raised("bits", 5000)
    'raise the limit with limits=Limits(bits=5000)'
    """
    value = max(needed, 2 * int(getattr(current(), name)))
    return "raise the limit with " + either(f"--limit {name}={value}", f"limits=Limits({name}={value})")


@contextmanager
def limited(limits: Limits | None) -> Iterator[Limits]:
    """Set the limits for a block; None leaves those that hold."""
    if limits is None:
        yield current()
        return
    token = _current.set(limits)
    try:
        yield limits
    finally:
        _current.reset(token)
