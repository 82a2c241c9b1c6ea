"""The options of `hybrid completion`, `hybrid man` and `hybrid help`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

SHELLS = ("bash", "zsh", "fish")


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hybrid completion`."""
    parser.add_argument("shell", choices=SHELLS, metavar="|".join(SHELLS), help="for which shell")


def add_man(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hybrid man`."""
    parser.add_argument("--markdown", action="store_true", help="as Markdown, not as roff")


def add_help(parser: argparse.ArgumentParser, commands: Sequence[str]) -> None:
    """Add the options of `hybrid help`."""
    parser.add_argument(
        "topic", nargs="?", choices=commands, metavar="COMMAND", help="which; without it an overview"
    )
