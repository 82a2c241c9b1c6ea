"""The options that several commands take: the model, its matrix, the output, threads."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence

from hybrid.base.check_options import OPTIONS
from mtbdd.language.limit_defaults import DEFAULT_LIMITS

# `typing.TYPE_CHECKING` without importing `typing`, which takes long.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


# The common part of the commands' parsers: positions and options in any order, near names for what is
# misspelt.

# Before what follows `--`, so that it is read as a position; no argument of a process holds this character.
_MARK = "\0"

_WORD = re.compile(r"-[A-Za-z][\w:+-]+")
_LONG_WORD = re.compile(r"--[A-Za-z][\w:+-]*")


def _columns() -> int:
    """Return the columns of the terminal as `shutil` does, which loads libraries of compression."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the layout of texts with line breaks, and names with hyphens in one piece."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)

    def _split_lines(self, text: str, width: int) -> list[str]:
        from textwrap import wrap

        return wrap(" ".join(text.split()), width, break_on_hyphens=False)


class CommandParser(argparse.ArgumentParser):
    """A parser that takes options before, between and behind positions.

    `examples` say what a command line does, and the command line; they stand at the end of the help, behind
    the `epilog` of the options, and in the manual.
    """

    def __init__(self, *, examples: Sequence[tuple[str, str]] = (), **options: Any) -> None:
        options.setdefault("formatter_class", _HelpFormatter)
        if examples:
            lines = [f"  {command}\n      {what}" for what, command in examples]
            before = f"{options['epilog']}\n\n" if options.get("epilog") else ""
            options["epilog"] = before + "examples:\n" + "\n".join(lines)
        super().__init__(**options)
        self.examples = tuple(examples)
        self._is_inside = False

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse a command's arguments; an unknown argument is an error that names the nearest option."""
        if self._is_inside or args is None or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        given = list(args)
        if "--" in given:
            cut = given.index("--")
            given = given[:cut] + [_MARK + text for text in given[cut + 1 :]]
        self._refuse_unknown(given)
        self._is_inside = True
        try:
            found, left = self.parse_known_intermixed_args(given, namespace)
        finally:
            self._is_inside = False
        if left:
            self._refuse([text.removeprefix(_MARK) for text in left])
        for action in self._get_positional_actions():
            value = getattr(found, action.dest, None)
            if isinstance(value, str):
                setattr(found, action.dest, value.removeprefix(_MARK))
        return found, []

    def _refuse_unknown(self, given: Sequence[str]) -> None:
        """Refuse words with dashes that are no option here.

        argparse would read `-sim` as `-s im`; in some versions of Python a word after an unknown `--name` is
        a position.
        """
        options = self._option_string_actions
        for text in given:
            name = text.partition("=")[0]
            if _LONG_WORD.fullmatch(name) and not any(option.startswith(name) for option in options):
                self._refuse([text])
            if not _WORD.fullmatch(name) or any(option.startswith(name) for option in options):
                continue
            glued = options.get(name[:2])  # -oFILE
            if glued is None or glued.nargs is not None or glued.help == argparse.SUPPRESS:
                self._refuse([text])

    def _refuse(self, left: Sequence[str]) -> NoReturn:
        """End with an error that names the words that were not understood."""
        from hybrid.app.cli.excerpts import advice_on
        from mtbdd.language.errors import suggestion

        if instead := advice_on(left[0]):
            self.error(f"{left[0].partition('=')[0]} is no option here: {instead}")
        advice = ""
        if left[0].startswith("-"):
            advice = suggestion(left[0].partition("=")[0], self._option_string_actions)
        if not left[0].startswith("-") and "property" in (action.dest for action in self._actions):
            advice = "; several properties are one text, with ';' between them, or a file"
        self.error(f"unrecognized arguments: {' '.join(left)}{advice}")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse a value that is none of an option's choices, or no command, and name the nearest."""
        if action.choices is None or value in action.choices:
            return
        from mtbdd.language.errors import suggestion

        known = [str(choice) for choice in action.choices]
        nearest = suggestion(str(value), known)
        raise argparse.ArgumentError(action, f"expected {_alternatives(known)}, got {value!r}{nearest}")


def _alternatives(names: Sequence[str]) -> str:
    """Return names as "a, b or c"."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


class JoinTexts(argparse.Action):
    """Joins the values of all occurrences of an option, with its `const` between.

    A constant that is given twice is found when they are read.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Put the text behind those that were given before; an empty one, as of scripts, changes nothing."""
        before = getattr(namespace, self.dest, None)
        setattr(
            namespace, self.dest, f"{before}{self.const}{values}" if before and values else before or values
        )


# The options `--timeout`, `--memory` and `--limit`, which `hybrid.app.cli.limited_run` obeys.

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_DURATIONS = {"": 1, "s": 1, "m": 60, "h": 3600}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)
_SHOWN = 60  # characters of a value that are shown where it is refused


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command."""
    parser.add_argument(
        "--timeout",
        type=_seconds,
        metavar="S",
        help="end after S seconds, with the answers found so far; s, m (minutes) or h may follow",
    )
    parser.add_argument(
        "--memory", type=_bytes, metavar="BYTES", help="end beyond so much memory; K, M, G, T may follow"
    )
    parser.add_argument(
        "--limit",
        dest="limits",
        type=_limit,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a limit on what texts may ask for; may be repeated; by default "
        + ", ".join(f"{name}={value}" for name, value in DEFAULT_LIMITS.items()),
    )


def _seconds(text: str) -> float:
    seconds = _measured(text, _DURATIONS)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(
            f"expected a positive number of seconds, or one like 90s, 5m or 1.5h, got {text[:_SHOWN]!r}"
        )
    return seconds


def _bytes(text: str) -> int:
    size = _measured(text.upper(), _UNITS)
    if not 1 <= size < 2.0**63:
        raise argparse.ArgumentTypeError(
            f"expected a positive number of bytes, like 4G or 500M, got {text[:_SHOWN]!r}"
        )
    return int(size)


def _measured(text: str, units: dict[str, int]) -> float:
    """Return a number times the unit behind it; 0 where it is none."""
    unit = text[-1:] if text[-1:] in units else ""
    number = text.removesuffix(unit)
    return float(number) * units[unit] if _NUMBER.fullmatch(number) else 0.0


def _limit(text: str) -> tuple[str, int]:
    from mtbdd.language.limits import Limits  # help is shown without

    name, _, value = text.partition("=")
    if not _WHOLE.fullmatch(value):
        raise argparse.ArgumentTypeError(
            f"expected NAME=VALUE, the value a whole number of at most 18 digits, got {text[:_SHOWN]!r}"
        )
    try:
        Limits().changed(name, int(value))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name, int(value)


# The properties that a command line asks for, as options: a text or a file, and which of it.


class _Places(argparse.Action):
    """Adds properties by name, or as ints by place: given from 1, kept from 0."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        chosen: list[str | int] = list(namespace.chosen)
        for key in (text.strip() for text in values.split(",")):
            if not (key.isascii() and key.isdigit()):
                chosen.append(key)
            elif int(key) < 1 or len(key) > 9:
                raise argparse.ArgumentError(
                    self, f"expected a name or a place counted from 1, got {key}; --property counts from 0"
                )
            else:
                chosen.append(int(key) - 1)
        namespace.chosen = chosen


def add_properties(parser: argparse.ArgumentParser, without: str) -> argparse._ArgumentGroup:
    """Add the position for properties, which of them are meant, and PRISM's spellings.

    `without` says in the help what happens without properties. Returns the group of the options that choose.
    """
    parser.add_argument(
        "property",
        nargs="?",
        metavar="PROPERTY|FILE",
        help=f"a property, a file of properties, or - for properties on standard input; without it {without}",
    )
    which = parser.add_argument_group("which properties, and how they are told")
    which.add_argument(
        "--prop",
        dest="chosen",
        action=_Places,
        default=[],
        metavar="NAME|NUMBER",
        help="take only this property of the file: its name, or its place counted from 1; several are "
        "separated by commas; may be repeated",
    )
    which.add_argument(
        "--property",
        dest="chosen",
        action="append",
        default=[],
        metavar="NAME|INDEX",
        help="the same, but with places counted from 0",
    )
    which.add_argument(
        "--list",
        action="store_true",
        help="list the properties with their places, counted from 1, and end; no model is built",
    )
    hidden = argparse.SUPPRESS
    parser.add_argument(
        "-pf",
        "-pctl",
        "-csl",
        dest="property_text",
        action=JoinTexts,
        const=";\n",
        metavar="PROPERTY",
        help=hidden,
    )
    parser.add_argument(
        "-prop", "-property", dest="chosen", action=_Places, metavar="NAME|NUMBER", help=hidden
    )
    return which


# PRISM's spellings of options, beside those of `hybrid`; `hybrid.app.cli.excerpts.SAME` lists them.


def add_check_spellings(parser: argparse.ArgumentParser) -> None:
    """Add PRISM's spellings of how `check` solves, hidden in its help."""
    hidden = argparse.SUPPRESS
    parser.add_argument("-epsilon", "-e", dest="epsilon", type=float, help=hidden)
    parser.add_argument("-paretoepsilon", dest="pareto_epsilon", type=float, help=hidden)
    parser.add_argument("-absolute", "-abs", dest="absolute", action="store_true", help=hidden)
    parser.add_argument("-relative", "-rel", dest="absolute", action="store_false", help=hidden)
    parser.add_argument("-exact", dest="exact", action="store_true", help=hidden)
    parser.add_argument("-maxiters", dest="max_iters", type=int, help=hidden)
    parser.add_argument("-omega", dest="omega", type=float, help=hidden)
    for names, method in (
        (("-power", "-pow"), "power"),
        (("-jacobi", "-jac"), "jacobi"),
        (("-gaussseidel", "-gs"), "gauss-seidel"),
        (("-jor",), "jor"),
        (("-intervaliter", "-ii"), "interval"),
    ):
        parser.add_argument(*names, dest="method", action="store_const", const=method, help=hidden)
    for names, engine in (
        (("-hybrid",), "hybrid"),
        (("-sparse", "-s"), "explicit"),
        (("-explicit", "-ex"), "explicit"),
        (("-mtbdd", "-m"), "symbolic"),
    ):
        parser.add_argument(*names, dest="engine", action="store_const", const=engine, help=hidden)
    parser.add_argument("-nofixdl", dest="no_fix_deadlocks", action="store_true", help=hidden)


MOST_THREADS = 1024


def add_constants(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--const`, which may be repeated."""
    parser.add_argument(
        "--const", default="", action=JoinTexts, const=",", metavar="N=4,K=2", help=f"{what}; may be repeated"
    )
    parser.add_argument("-const", dest="const", action=JoinTexts, const=",", help=argparse.SUPPRESS)


def _order(text: str) -> str:
    """Return the name of an order; "search", which the version before had, is refused with its reason."""
    if text == "search":
        raise argparse.ArgumentTypeError(
            "search is not offered any more, no product was quicker for it; leave it out: auto looks at the "
            "others"
        )
    return text


def add_model(parser: argparse.ArgumentParser, constants: str = "", nargs: str | None = None) -> None:
    """Add the options of commands that build a model; `constants` is a sentence for the help of `--const`.

    `nargs` is "?" where another option may have taken the model.
    """
    parser.add_argument(
        "model",
        nargs=nargs,
        metavar="MODEL",
        help="a dtmc, ctmc or mdp: a text in the PRISM language, - for one on standard input, or a file that "
        "ends in .umb, .drn, .tra, .pexp or .dd",
    )
    add_constants(parser, f"values of the constants that the files leave open{constants}")
    parser.add_argument("--no-fix-deadlocks", action="store_true", help="refuse states without successors")
    parser.add_argument(
        "--order",
        default="auto",
        type=_order,
        choices=("auto", "model", "reversed", "force"),
        help="variable order: the text's unless another is far smaller (default), the text's, with modules "
        "last to first, or one that draws related variables together",
    )
    parser.add_argument(
        "--package",
        default="auto",
        choices=("auto", "cudd", "autoref"),
        help="what makes the decision diagrams: CUDD where dd has it (default), CUDD or an error, or dd's "
        "diagrams in Python, which are slow and need no library in C",
    )
    parser.add_argument(
        "--build",
        default="auto",
        choices=("auto", "symbolic", "explicit"),
        help="make diagrams of the text's commands, or list its states and compress the list: quicker for "
        "models of up to some million states without structure; auto (default) makes diagrams unless the "
        "commands are costly and the states few",
    )
    beside = parser.add_argument_group(
        "files that belong to a model given as .tra", "found beside it by name"
    )
    beside.add_argument("--type", choices=("dtmc", "ctmc", "mdp"), help="where the files do not tell it")
    beside.add_argument("--states", metavar="FILE", help="variables' values (.sta)")
    beside.add_argument("--labels", metavar="FILE", help="labels, initial states among them (.lab)")
    for name, what in (("state", "srew"), ("transition", "trew")):
        beside.add_argument(
            f"--{name}-rewards",
            action="append",
            default=[],
            metavar="FILE",
            help=f"(.{what}); may be repeated",
        )
    add_limits(parser)
    add_output(parser)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command: threads, and the amount of output."""
    parser.add_argument(
        "--threads",
        type=threads,
        metavar="N",
        help="threads of the CPU that work (default HYBRID_NUM_THREADS, or all cores that may be used)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="progress as plain lines where there is no terminal; on one, runs of an experiment in full",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress, no warnings")


def add_matrix(parser: argparse._ActionsContainer) -> None:
    """Add the options about the numerical matrix."""
    add_option(parser, "backend")
    add_option(parser, "level", _level)
    add_option(parser, "representation")


def add_option(
    parser: argparse._ActionsContainer, keyword: str, kind: Callable[[str], Any] | None = None
) -> None:
    """Add the flag of an option of checks, as its record says; `kind` reads the value where no type does."""
    record = OPTIONS[keyword]
    if record.kind is bool:
        parser.add_argument(record.flag, action="store_true", help=record.help)
        return
    parser.add_argument(
        record.flag,
        default=record.flag_default,
        type=kind or record.kind,
        choices=record.choices or None,
        metavar=record.metavar,
        help=record.help,
    )


def threads(text: str) -> int:
    """Read a number of threads; argparse turns the error into a usage message."""
    if text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MOST_THREADS:
        return int(text)
    raise argparse.ArgumentTypeError(f"expected a whole number from 1 to {MOST_THREADS}, got {text!r}")


_LEVELS = ("auto", "min-memory", "min-time")


def _level(text: str) -> str | int:
    """Read a level; argparse turns the error into a usage message."""
    if text in _LEVELS:
        return text
    if text.isascii() and text.isdigit():
        return int(text)
    from mtbdd.language.errors import suggestion

    near = suggestion(text, _LEVELS)
    raise argparse.ArgumentTypeError(f"{text!r} is not auto, min-memory, min-time or a number{near}")


def add_simulate(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a model in the PRISM language (dtmc, ctmc or mdp), or - for one on standard input",
    )
    add_properties(parser, "the paths are written")
    add_constants(parser, "values of the constants that the texts leave open")
    parser.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="steps of every path (default 100); with a property at most so many (default 100000)",
    )
    parser.add_argument(
        "--paths", type=int, metavar="K", help="how many paths (default 1; with a property 10000)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="of the random numbers (default 0); a seed repeats"
    )
    parser.add_argument("--until", type=float, metavar="T", help="end paths of a ctmc at this time")
    parser.add_argument(
        "--start",
        default="",
        action=JoinTexts,
        const=",",
        metavar="x=1,y=2",
        help="values of variables in the first state, instead of their initial ones; may be repeated",
    )
    parser.add_argument("--rewards", action="store_true", help="also write what the paths earn")
    parser.add_argument("--to", metavar="FILE.csv", help="where to write the paths (default standard output)")
    parser.add_argument(
        "--confidence", type=float, metavar="C", help="of the interval of an estimate (default 0.99)"
    )
    add_limits(parser)
    add_output(parser)
