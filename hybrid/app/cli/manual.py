"""The manual of the command line, made from the parser: a page for `man`, and one in Markdown."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from hybrid.app.cli.arguments import EXIT_STATUS, FIRST_STEPS
from hybrid.app.cli.excerpts import SAME
from hybrid.app.cli.grammar import Entry, command_line
from hybrid.base.installing import installed_version

# `hybrid completion` and `hybrid man`: texts that are made from the parser.


def print_text(options: argparse.Namespace) -> int:
    """Print the text that a command makes; return the exit status."""
    import sys

    if options.command == "completion":
        from hybrid.app.cli.completion import completion

        text = completion(options.shell)
    else:
        text = manual_markdown() if options.markdown else manual_roff()
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        return 1
    except OSError as error:
        print(f"error: cannot write to standard output: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0


_PURPOSE = "numerical probabilistic model checking on compressed symbolic matrices"
_INPUT = (
    "Options and positions come in any order; what follows -- is a position, whatever it begins with.  "
    "MODEL or the properties may be -, standard input, which messages call <stdin>.  A fault is told as"
    " file:line:column: message, with the line and a caret below.  A property with a fault is told "
    "where its answer would be, and hides no other: reading goes on behind the next semicolon, or at "
    "the next line that begins with an operator, a declaration or a name and a colon.  A fault in a "
    "declaration ends the command, and so does a text of which no property can be read."
)
_ENVIRONMENT = (
    ("HYBRID_NUM_THREADS", "threads of the CPU that work, where --threads does not say it"),
    ("HYBRID_DD_PACKAGE", "what --package auto is: cudd or autoref"),
    (
        "OMP_NUM_THREADS, OPENBLAS_NUM_THREADS, MKL_NUM_THREADS, NUMBA_NUM_THREADS",
        "bound the pools of the libraries below; unless set, they follow --threads and HYBRID_NUM_THREADS",
    ),
)


def manual_markdown() -> str:
    """Return the page docs/command_line.md."""
    top, commands = command_line()
    lines = [
        "# The command line",
        "",
        "<!-- Made by `hybrid man --markdown`; a test compares it with the parser. -->",
        "",
        f"`hybrid COMMAND ...`: {_PURPOSE}. `python -m hybrid` is the same. `hybrid help COMMAND` shows the "
        "options of a command; `hybrid man` is this page for `man`.",
        "",
        _escaped(_INPUT.replace("  ", " ")),
        *_examples(FIRST_STEPS),
        "",
        *_table(
            "command", "what it does", [(f"[`{c.name}`](#{c.name})", _escaped(c.what)) for c in commands]
        ),
        "",
        *_option_table(top),
        "",
        *_table("exit status", "meaning", [(str(s), _escaped(what)) for s, what in EXIT_STATUS]),
        "",
        *_table("environment", "meaning", [(_coded(n), _escaped(what)) for n, what in _ENVIRONMENT]),
    ]
    for command in commands:
        lines += ["", f"## {command.name}", "", _sentence(command.what), "", "```text", command.usage, "```"]
        if any(entry.help for entry in command.positions):
            lines += ["", *_option_table(command.positions, "position")]
        for group in command.groups:
            shown = [entry for entry in group.entries if not entry.is_hidden]
            if not shown:
                continue
            if group.title not in ("", "options"):
                lines += ["", _sentence(group.title).rstrip(".") + ":"]
            lines += ["", *_option_table(shown)]
        lines += _examples(command.examples)
    same = [(_coded(given), _coded(here) if here.startswith("-") else here) for given, here in SAME.items()]
    lines += [
        "",
        "## PRISM's spellings",
        "",
        "`check` also takes these, `simulate` those of properties, all commands with a model `-const`:",
        "",
    ]
    lines += _table("PRISM", "here", same)
    return "\n".join(lines) + "\n"


def manual_roff() -> str:
    """Return the manual page of section 1, as `man` reads it."""
    top, commands = command_line()
    lines = [
        f'.TH HYBRID 1 "" "hybrid {installed_version()}" "User Commands"',
        ".SH NAME",
        f"hybrid \\- {_roff(_PURPOSE)}",
        ".SH SYNOPSIS",
        *(f".B hybrid {_roff(c.name)}\n{_roff(c.usage.split(c.name, 1)[1].strip())}\n.br" for c in commands),
        ".SH DESCRIPTION",
        _roff(_INPUT.replace("  ", " ")),
        ".SH OPTIONS",
        *_roff_options(top),
        ".SH EXAMPLES",
        *_roff_examples(FIRST_STEPS),
    ]
    for command in commands:
        lines += [f".SH HYBRID {_roff(command.name.upper())}", _roff(_sentence(command.what)), ".PP"]
        lines += [f".B {_roff(command.usage)}"]
        lines += _roff_options(command.positions)
        for group in command.groups:
            shown = [entry for entry in group.entries if not entry.is_hidden]
            if shown:
                lines += [f".SS {_roff(group.title)}", *_roff_options(shown)]
        lines += _roff_examples(command.examples)
    lines += [
        ".SH PRISM SPELLINGS",
        _roff("check also takes these, simulate those of properties, all commands with a model -const:"),
    ]
    for given, here in SAME.items():
        lines += [".TP", f".B {_roff(given)}", _roff(here)]
    lines.append(".SH EXIT STATUS")
    for status, what in EXIT_STATUS:
        lines += [".TP", f".B {status}", _roff(what)]
    lines.append(".SH ENVIRONMENT")
    for name, what in _ENVIRONMENT:
        lines += [".TP", f".B {_roff(name)}", _roff(what)]
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------- Markdown


def _examples(examples: Sequence[tuple[str, str]]) -> list[str]:
    lines = []
    for what, example in examples:
        lines += ["", _sentence(what).rstrip(".") + ":", "", "```text", example, "```"]
    return lines


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _escaped(text: str) -> str:
    for sign in "\\|<>[]*_":
        text = text.replace(sign, "\\" + sign)
    return text


def _coded(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _table(first: str, second: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    return [f"| {first} | {second} |", "| --- | --- |", *(f"| {a} | {b} |" for a, b in rows)]


def _option_table(entries: Sequence[Entry], first: str = "option") -> list[str]:
    return _table(
        first, "meaning", [(_coded(_spelt(e)), _escaped(e.help)) for e in entries if not e.is_hidden]
    )


def _spelt(entry: Entry) -> str:
    """Return an option with its values, these written out where they are few."""
    return entry.spelt() + ("..." if entry.is_repeatable else "")


# ---------------------------------------------------------------------- roff


def _roff(text: str) -> str:
    """Return a text that roff shows as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace('"', "\\(dq")
    return f"\\&{text}" if text.startswith(".") else text


def _roff_options(entries: Sequence[Entry]) -> list[str]:
    lines = []
    for entry in entries:
        if not entry.is_hidden:
            lines += [".TP", f".B {_roff(_spelt(entry))}", _roff(entry.help)]
    return lines


def _roff_examples(examples: Sequence[tuple[str, str]]) -> list[str]:
    lines = []
    for what, example in examples:
        lines += [".PP", _roff(_sentence(what).rstrip(".") + ":"), ".PP", ".nf", f".RS 4\n{_roff(example)}"]
        lines += [".RE", ".fi"]
    return lines
