"""The properties that a command line asks for, as options: a text or a file, and which of it."""

from __future__ import annotations

import argparse

from hybrid.app.cli.command_parser import JoinTexts

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


class _Places(argparse.Action):
    """Adds properties by name, or as ints by place: told from 1, kept from 0."""

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

    Parameters
    ----------
    parser : ArgumentParser
    without : str
        What happens without properties.

    Returns
    -------
    argument group
        Of the options that choose, for more of the kind.
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
