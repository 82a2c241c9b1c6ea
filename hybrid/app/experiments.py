"""Experiments: a property for many values of constants, one run each, and the table of what came out."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import product
from numbers import Rational
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from hybrid.analysis.run.options import CheckOptions, ExperimentKeywords, LoadKeywords, chosen_options
from hybrid.base.errors import HybridError, OptionError
from hybrid.checking.answer import Answer, pairs_text
from hybrid.checking.checker import Checker
from hybrid.models.loading import load
from hybrid.properties import load_properties, parse_properties, resolve_properties
from mtbdd.base.budget import BudgetError
from mtbdd.base.errors import option
from mtbdd.build.model import SymbolicModel
from mtbdd.language.constants import constant_items, constant_value, is_range
from mtbdd.language.reals import from_real, real_of

if TYPE_CHECKING:
    from hybrid.models.lumping import LumpingChecker


MOST_RUNS = 100_000
"""Combinations of constants; more are surely a slip."""

_MOST_DIGITS = 400  # a double has fewer in front of the point and behind it
_LOADING = frozenset(LoadKeywords.__annotations__)
_KEPT = ("scheduler", "values", "bisimulation")
_ROWS_SHOWN = 20
_OPTIONAL, _UNSHOWN = ("lower", "upper", "error"), ("states", "seconds")

Value = bool | int | float


class ExperimentTable(list[dict[str, Any]]):
    """The runs of an experiment, a record each, in the order in which they were made.

    A record has the constants by name, then `property`, `value`, `lower`, `upper`, `kind`, `error`, `states`
    and `seconds`.  A run that could not be answered has an `error` and no `value`.
    """

    def __repr__(self) -> str:
        header, rows, more = self._shown(_ROWS_SHOWN)
        cells = [header, *([_plain(cell) for cell in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells if row
        ]
        rest = [f"... and {more:,} more"] if more else []
        return "\n".join([self._title(), *lines, *rest])

    def _repr_html_(self) -> str:
        from hybrid.base.notebook import block, paragraph, rows_table

        header, rows, more = self._shown(_ROWS_SHOWN)
        table = rows_table(header, [[_plain(cell) for cell in row] for row in rows], more) if rows else ""
        return block("experiment", paragraph(self._title()), table)

    def _title(self) -> str:
        texts = list(dict.fromkeys(str(record["property"]) for record in self if "property" in record))
        about = f" of {texts[0]}" if len(texts) == 1 else f" of {len(texts)} properties" if texts else ""
        return f"<ExperimentTable, {len(self):,} records{about}>"

    def _shown(self, most: int) -> tuple[list[str], list[list[Any]], int]:
        """Return a header, the first rows, and how many more there are.

        The property is left out if it is always the same, and bounds and errors where there are none.
        """
        names = list(dict.fromkeys(name for record in self for name in record))
        several = len({str(record.get("property")) for record in self}) > 1
        empty = {name for name in _OPTIONAL if all(record.get(name) is None for record in self)}
        header = [n for n in names if n not in empty and n not in _UNSHOWN and (several or n != "property")]
        rows = [[record.get(name) for name in header] for record in self[:most]]
        return header, rows, len(self) - len(rows)

    def to_pandas(self) -> Any:
        """Return the table as a `pandas.DataFrame`.

        Raises
        ------
        ImportError
            Pandas is not installed; nothing else here needs it.
        """
        import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]

        return pandas.DataFrame(list(self))

    def plot(self, path: str | os.PathLike[str], over: str | None = None, title: str = "") -> list[str]:
        """Draw the values over one of the constants, and return what was left out, a line a property.

        Parameters
        ----------
        path : path-like
            ``.png``, ``.svg`` or ``.pdf``.
        over : str, optional
            The constant on the axis; default the one with the most values.
        title : str

        Raises
        ------
        hybrid.HybridError
            No matplotlib, no constant with numbers, more than six properties, or a file that cannot be
            written.
        """
        from hybrid.base.figures import plot_experiment

        return plot_experiment(self, Path(path), over, title)

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table as CSV, a row a run.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        names = list(dict.fromkeys(name for record in self for name in record))
        with Path(path).open("w", newline="", encoding="utf-8") as lines:
            import csv

            writer = csv.DictWriter(lines, names)
            writer.writeheader()
            writer.writerows(self)


def _plain(cell: Any) -> str:
    """Return a cell as text, all digits of numbers kept."""
    if cell is None:
        return ""
    return str(cell).lower() if isinstance(cell, bool) else str(cell).partition("\n")[0]


def experiment(
    model: str | os.PathLike[str] | SymbolicModel,
    prop: str | os.PathLike[str],
    constants: Mapping[str, Any],
    *,
    options: CheckOptions | None = None,
    **overrides: Unpack[ExperimentKeywords],
) -> ExperimentTable:
    """Answer properties for every combination of constants.

    Parameters
    ----------
    model : str, path-like or SymbolicModel
        A file, built again when a constant of its own changes; or a model that is built, whose constants
        stay.
    prop : str or path-like
        A property's text, or several; a path object to a file of them.
    constants : mapping
        Values by name, of the model and of the properties.  A list, a range or an array stands for one run a
        value, as does text such as ``"1:10"`` or ``"0:0.1:1"`` (from, step, to).
    options : CheckOptions, optional
        How answers are found.
    **overrides
        As for `hybrid.load` and `hybrid.check_all`.

    Returns
    -------
    ExperimentTable
        One record a run and property, the last constant varying fastest.

    Raises
    ------
    hybrid.HybridError
        No run could be made at all: the first reason.  If some could, the others have it as their `error`.
    """
    given: Mapping[str, Any] = overrides
    loading = {name: value for name, value in given.items() if name in _LOADING}
    keep_scheduler, keep_values, with_quotient = (bool(given.get(name)) for name in _KEPT)
    chosen = chosen_options("experiment", options, given, (*_KEPT, *sorted(_LOADING)))
    parsed = load_properties(prop) if isinstance(prop, os.PathLike) else parse_properties(prop)
    runs = combinations(constants)
    table, failures = ExperimentTable(), []
    built: SymbolicModel | None = model if isinstance(model, SymbolicModel) else None
    built_with: dict[str, Value] = {}
    known, spare = {c.name for c in parsed.constants}, parsed.undeclared()
    for values in runs:
        needed = {name: value for name, value in values.items() if name not in known}
        if built is not None:
            needed = of_model(needed, spare, built)
        try:
            if isinstance(model, SymbolicModel):
                _refuse_unknown(needed)
            elif built is None or needed != built_with:
                built = None  # frees the last model before the next one is built
                built = load(model, needed, ignore_unknown=spare, **loading)
                built_with = of_model(needed, spare, built)
            assert built is not None
            resolved = resolve_properties(parsed, built.source, values, keep_faults=True)
            checker: Checker | LumpingChecker
            if with_quotient:
                from hybrid.models.lumping import LumpingChecker  # most experiments need none

                checker = LumpingChecker(built, chosen, None, keep_scheduler, keep_values)
            else:
                checker = Checker(built, chosen, None, keep_scheduler, keep_values)
        except (HybridError, MemoryError) as error:
            failures.append(error)
            table += [{**values, **_unanswered(p.name or p.text, _reason(error))} for p in parsed.properties]
            continue
        for item in resolved.properties:
            table.append({**values, **_answered(item.name or item.text, checker, item, built.n_states)})
    if failures and len(failures) == len(runs):
        raise failures[0]
    return table


def _answered(name: str, checker: Checker | LumpingChecker, item: Any, states: int) -> dict[str, Any]:
    """Return the record of one answer."""
    try:
        answer: Answer = checker.answer(item)
    except (BudgetError, MemoryError) as error:
        return _unanswered(name, _reason(error))
    return {
        "property": name,
        "value": answer.value,
        "lower": answer.lower,
        "upper": answer.upper,
        **({} if answer.pairs is None else {"pairs": pairs_text(answer.pairs)}),
        "kind": answer.kind,
        "error": answer.error,
        "states": states,
        "seconds": answer.seconds,
    }


def _unanswered(name: str, reason: str) -> dict[str, Any]:
    """Return the record of a run without an answer."""
    nothing = dict.fromkeys(("value", "lower", "upper", "kind"))
    return {"property": name, **nothing, "error": reason, "states": None, "seconds": 0.0}


def _reason(error: BaseException) -> str:
    """Return why there is no answer."""
    return f"out of memory: {error}" if isinstance(error, MemoryError) else str(error)


def _refuse_unknown(needed: Mapping[str, Value]) -> None:
    if needed:
        raise OptionError(
            f"constants: the model is built already, and the properties have no constants "
            f"{', '.join(needed)}; give the model's file"
        )


# ------------------------------------------------------------------ combinations


def combinations(constants: Mapping[str, Any]) -> list[dict[str, Value]]:
    """Return one assignment a combination of values; the last constant varies fastest.

    An `OptionError` says that there is no value, one of another kind, no range, or more than `MOST_RUNS`.
    """
    choices = [[(name, value) for value in _values(name, given)] for name, given in constants.items()]
    count_runs(len(own) for own in choices)
    return [dict(together) for together in product(*choices)]


def of_model(given: Mapping[str, Any], spare: Collection[str], model: SymbolicModel) -> dict[str, Any]:
    """Return the given constants without those of the properties alone.

    A name that properties mention (`spare`, `Properties.undeclared`), and neither they nor the model declare,
    is a constant of theirs by being given.
    """
    own = model.source.constants
    return {name: value for name, value in given.items() if name in own or name not in spare}


def count_runs(choices: Iterable[int]) -> int:
    """Return how many combinations there are of so many values each, at most `MOST_RUNS`."""
    count = math.prod(choices)
    if count > MOST_RUNS:
        raise OptionError(
            f"{option('const')}: the ranges have more than {MOST_RUNS} combinations; choose larger steps"
        )
    return count


def _values(name: str, given: Any) -> Iterator[Value]:
    """Yield the values that were given for one constant."""
    if isinstance(given, str) and is_range(given):
        yield from map(constant_value, range_values(name, given))
        return
    several = given.tolist() if hasattr(given, "tolist") else given
    found = [several] if isinstance(several, (bool, int, float, str, Rational, Decimal)) else list(several)
    if not found:
        raise OptionError(f"constants: expected values for {name}, got none")
    for value in found:
        yield _plain_value(name, value.item() if hasattr(value, "item") else value)


def _plain_value(name: str, value: Any) -> Value:
    """Return one value that was given for a constant as it is shown, and knows what it was rounded from."""
    try:
        if isinstance(value, (str, Decimal)):
            return constant_value(str(value))
    except ValueError as error:
        raise OptionError(f"constants: {str(error).replace('@', name, 1)}") from None
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Rational):
        return from_real(Fraction(value))
    raise OptionError(f"constants: expected numbers or truth values for {name}, got {value!r}")


def range_values(name: str, text: str) -> list[str]:
    """Return the values of a range as texts, ``2:10`` or ``2:2:10`` (from, step, to).

    Steps are decimal, so that ``0:0.1:1`` ends with 1 and meets 0.3. An `OptionError` says that a range does
    not count upwards, or that its ends are no numbers.
    """
    parts = [part.strip() for part in text.split(":")]
    wrong = OptionError(
        f"{option('const')}: expected {name}=FROM:TO or {name}=FROM:STEP:TO with numbers, a positive step "
        f"and FROM not above TO, got '{text.strip()}'"
    )
    try:
        numbers = [Decimal(part) for part in parts]
    except InvalidOperation:
        return _fractions_of_range(name, parts, wrong)
    if len(numbers) not in (2, 3) or not all(number.is_finite() for number in numbers):
        raise wrong
    first, last = numbers[0], numbers[-1]
    step = numbers[1] if len(numbers) == 3 else Decimal(1)
    if step <= 0 or first > last:
        raise wrong
    if any(abs(number.adjusted()) > _MOST_DIGITS for number in numbers if number):
        raise OptionError(
            f"{option('const')}: the numbers of the range of {name} need more than {_MOST_DIGITS} digits "
            "when they are written out; choose others"
        )
    return [f"{first + k * step:f}" for k in range(_steps(name, (last - first) / step))]


def _fractions_of_range(name: str, parts: list[str], wrong: OptionError) -> list[str]:
    """Return the values of a range whose ends or step are no decimals but expressions, like ``0:1/3:1``."""
    try:
        values = [constant_value(part) for part in parts]
    except ValueError:
        raise wrong from None
    numbers = [real_of(value) for value in values if not isinstance(value, bool)]
    exact = [number for number in numbers if isinstance(number, Fraction)]
    if len(exact) not in (2, 3) or len(exact) != len(parts):
        raise wrong
    first, last = exact[0], exact[-1]
    step = exact[1] if len(exact) == 3 else Fraction(1)
    if step <= 0 or first > last:
        raise wrong
    return [str(first + k * step) for k in range(_steps(name, (last - first) / step))]


def _steps(name: str, ratio: Decimal | Fraction) -> int:
    """Return how many values a range has whose length is so many steps, at most `MOST_RUNS`."""
    if ratio >= MOST_RUNS:
        raise OptionError(
            f"{option('const')}: the range of {name} has more than {MOST_RUNS} values; choose a larger step"
        )
    return int(ratio) + 1


def expand_ranges(text: str) -> list[str]:
    """Return the combinations that constants with ranges stand for, each as constants without ranges.

    The text is that of `--const`, with ranges as `range_values` takes them. The last constant varies fastest;
    a text without a range stands for itself.
    """
    choices = []
    for item in constant_items(text):
        name, _, values = item.partition("=")
        choices.append(
            [f"{name}={v}" for v in range_values(name.strip(), values)] if is_range(values) else [item]
        )
    count_runs(map(len, choices))
    return [",".join(combination) for combination in product(*choices)]
