"""The options that several commands take: the model, its matrix, the output, threads."""

from __future__ import annotations

import argparse

from hybrid.app.cli.command_parser import JoinTexts
from hybrid.app.cli.limit_arguments import add_limits
from hybrid.app.cli.prism_spellings import add_const_spelling
from hybrid.base.check_options import OPTIONS

# Help does without `typing`, which takes long to import.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST_THREADS = 1024


def add_constants(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--const`, which may be repeated."""
    parser.add_argument(
        "--const",
        default="",
        action=JoinTexts,
        const=",",
        metavar="N=4,K=2",
        help=f"{what}; may be repeated",
    )
    add_const_spelling(parser)


def _order(text: str) -> str:
    """Return the name of an order; "search", which the version before had, is refused with its reason."""
    if text == "search":
        raise argparse.ArgumentTypeError(
            "search is not offered any more, no product was quicker for it; leave it out: auto looks at the "
            "others"
        )
    return text


def add_model(parser: argparse.ArgumentParser, constants: str = "", nargs: str | None = None) -> None:
    """Add what every command that builds a model takes.

    Parameters
    ----------
    parser : ArgumentParser
    constants : str
        What the help says of constants, besides.
    nargs : str, optional
        "?" where another option may have taken the model.
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
    """Add what every command takes: threads, and how much it tells."""
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
    """Add what concerns the numerical matrix."""
    add_option(parser, "backend")
    add_option(parser, "level", _level)
    add_option(parser, "representation")


def add_option(
    parser: argparse._ActionsContainer, keyword: str, kind: Callable[[str], Any] | None = None
) -> None:
    """Add the flag of an option of checks, as its record says.

    Parameters
    ----------
    parser : ArgumentParser or a group of one
    keyword : str
        Of the library.
    kind : callable, optional
        Reads the value, where no type does.
    """
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
