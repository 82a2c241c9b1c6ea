"""What the parser knows of the command line, as plain records: for completion, the manual and the pages."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from hybrid.app.cli.arguments import COMMANDS, build_parser
from hybrid.app.cli.command_parser import CommandParser

_FILES = ("FILE", "MODEL", "PROPERTY")
"""Words in the name of a value that is, or may be, a file."""


@dataclass(frozen=True)
class Entry:
    """An option, or a position.

    Attributes
    ----------
    names : tuple of str
        Spellings, ``("-v", "--verbose")``; empty for a position.
    value : str
        What the value is called; empty where there is none.
    choices : tuple of str
        All values, where these are few.
    help : str
        Empty for what the help hides.
    is_repeatable : bool
        Whether several values may follow one another.
    """

    names: tuple[str, ...]
    value: str
    choices: tuple[str, ...]
    help: str
    is_repeatable: bool

    @property
    def takes_file(self) -> bool:
        """Whether the value is, or may be, a file."""
        return not self.choices and any(word in self.value for word in _FILES)

    @property
    def is_hidden(self) -> bool:
        """Whether it is another spelling, which lists leave out."""
        return not self.help

    def spelt(self) -> str:
        """Return the names with the value, ``-o, --output FILE``."""
        names = ", ".join(self.names)
        return f"{names} {self.value}".strip()


@dataclass(frozen=True)
class Group:
    """Options under one heading."""

    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Command:
    """A command, as the parser has it."""

    name: str
    what: str
    usage: str
    positions: tuple[Entry, ...]
    groups: tuple[Group, ...]
    examples: tuple[tuple[str, str], ...]

    @property
    def options(self) -> tuple[Entry, ...]:
        """Options of all groups, the hidden ones, too."""
        return tuple(entry for group in self.groups for entry in group.entries)


def command_line() -> tuple[tuple[Entry, ...], tuple[Command, ...]]:
    """Return the options before a command, and the commands, in the order of the help."""
    parser = build_parser()
    subparsers = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    commands = [_command(name, subparsers.choices[name]) for name in COMMANDS]
    return tuple(_entry(a) for a in parser._actions if a.option_strings), tuple(commands)


def _command(name: str, parser: CommandParser) -> Command:
    groups = []
    for group in parser._action_groups:
        entries = tuple(_entry(a) for a in group._group_actions if a.option_strings)
        if entries:
            title = group.title or ""
            described = f"{title}: {group.description}" if group.description else title
            groups.append(Group(described, entries))
    positions = tuple(_entry(a) for a in parser._get_positional_actions())
    return Command(name, COMMANDS[name].what, str(parser.usage), positions, tuple(groups), parser.examples)


def _entry(action: argparse.Action) -> Entry:
    takes = action.nargs != 0
    choices: Sequence[str] = tuple(map(str, action.choices)) if action.choices is not None else ()
    value = ""
    if takes:
        value = str(action.metavar) if action.metavar else "|".join(choices) or action.dest.upper()
    help_text = "" if action.help in (None, argparse.SUPPRESS) else str(action.help).replace("%%", "%")
    return Entry(tuple(action.option_strings), value, tuple(choices), help_text, action.nargs in ("+", "*"))
