"""What the commands' parsers share: positions and options in any order, near names for what is misspelt."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, NoReturn

# Before what follows `--`, so that it is read as a position; no argument of a process holds this character.
_MARK = "\0"

_WORD = re.compile(r"-[A-Za-z][\w:+-]+")
_LONG_WORD = re.compile(r"--[A-Za-z][\w:+-]*")


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps what is laid out as it is, and names with hyphens in one piece."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        from textwrap import wrap

        return wrap(" ".join(text.split()), width, break_on_hyphens=False)


class CommandParser(argparse.ArgumentParser):
    """A parser that takes options before, between and behind positions.

    Parameters
    ----------
    examples : sequence of (str, str)
        What a command line does, and the command line; shown at the end of the help, behind the `epilog` of
        the options, and in the manual.
    **options
        Of `argparse.ArgumentParser`.
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
        """Parse a command's arguments; what is left over is an error told with the nearest option."""
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

        argparse would read `-sim` as `-s im`; what stands behind an unknown `--name` is a position for it in
        some versions of Python.
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
        """End with an error that tells what was not understood."""
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
        """Refuse a value that is none of an option's choices, or no command, and tell the nearest."""
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
    """Joins what every occurrence of an option gives, with its `const` between.

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
