"""Texts that need no model: shell completion and the manual, made from the parser, and versions."""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, version

from hybrid.app.cli.arguments import COMMANDS, EXIT_STATUS, FIRST_STEPS, build_parser
from hybrid.app.cli.common_arguments import CommandParser
from hybrid.app.cli.excerpts import SAME
from hybrid.base.installing import installed_version, package_folder

# ---------------------------------------------------------------------- records of the parser

_FILES = ("FILE", "MODEL", "PROPERTY")
"""Words in the name of a value that is, or may be, a file."""


@dataclass(frozen=True)
class Entry:
    """An option, or a position.

    A position has no `names`, a flag no `value`, what the help hides no `help`; `choices` are all values
    where these are few, and several values may follow one another where it `is_repeatable`.
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
class ManualCommand:
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


def command_line() -> tuple[tuple[Entry, ...], tuple[ManualCommand, ...]]:
    """Return the options before a command, and the commands, in the order of the help."""
    parser = build_parser()
    subparsers = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    commands = [_command(name, subparsers.choices[name]) for name in COMMANDS]
    return tuple(_entry(a) for a in parser._actions if a.option_strings), tuple(commands)


def _command(name: str, parser: CommandParser) -> ManualCommand:
    groups = []
    for group in parser._action_groups:
        entries = tuple(_entry(a) for a in group._group_actions if a.option_strings)
        if entries:
            title = group.title or ""
            described = f"{title}: {group.description}" if group.description else title
            groups.append(Group(described, entries))
    positions = tuple(_entry(a) for a in parser._get_positional_actions())
    return ManualCommand(
        name, COMMANDS[name].what, str(parser.usage), positions, tuple(groups), parser.examples
    )


def _entry(action: argparse.Action) -> Entry:
    takes = action.nargs != 0
    choices: Sequence[str] = tuple(map(str, action.choices)) if action.choices is not None else ()
    value = ""
    if takes:
        value = str(action.metavar) if action.metavar else "|".join(choices) or action.dest.upper()
    help_text = "" if action.help in (None, argparse.SUPPRESS) else str(action.help).replace("%%", "%")
    return Entry(tuple(action.option_strings), value, tuple(choices), help_text, action.nargs in ("+", "*"))


# ---------------------------------------------------------------------- completion


def completion(shell: str) -> str:
    """Return the text that a shell has to read for completion of the command line.

    It completes commands, options, values of options that are few, and names of files elsewhere.
    """
    top, commands = command_line()
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](top, commands)


def _names(entries: Sequence[Entry]) -> list[str]:
    """Return all spellings that the help shows."""
    return [name for entry in entries if not entry.is_hidden for name in entry.names]


def _quoted(text: str) -> str:
    """Return a text in single quotes, as all three shells read it."""
    return "'" + text.replace("'", "'\\''") + "'"


# ---------------------------------------------------------------------- bash


def _bash(top: Sequence[Entry], commands: Sequence[ManualCommand]) -> str:
    lines = [
        "# bash completion of hybrid",
        "_hybrid() {",
        '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"',
        '    local command="${COMP_WORDS[1]}" words="" files=1',
        "    COMPREPLY=()",
        "    if [[ $COMP_CWORD -eq 1 ]]; then",
        f"        words={_quoted(' '.join([*(c.name for c in commands), *_names(top)]))}",
        '        COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "        return",
        "    fi",
        '    case "$command" in',
    ]
    for command in commands:
        lines += [f"    {command.name})", '        case "$previous" in']
        for entry in command.options:
            if not entry.value:
                continue
            names = "|".join(entry.names)
            if entry.choices:
                action = f"words={_quoted(' '.join(entry.choices))}; files=0"
            elif entry.takes_file:
                action = ":"
            else:
                action = "return"
            lines.append(f"        {names}) {action};;")
        words = " ".join(choice for entry in command.positions for choice in entry.choices)
        lines.append('        *) if [[ "$current" == -* ]]; then')
        lines.append(f"               words={_quoted(' '.join(_names(command.options)))}; files=0")
        if words:
            lines += ["           else", f"               words={_quoted(words)}; files=0"]
        if not command.positions:
            lines += ["           else", "               files=0"]
        lines += ["           fi;;", "        esac;;"]
    lines += [
        "    esac",
        '    [[ -n "$words" ]] && COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "    if [[ $files -eq 1 ]]; then",
        "        compopt -o filenames 2>/dev/null",
        "        local IFS=$'\\n'",
        '        COMPREPLY=($(compgen -f -- "$current"))',
        "    fi",
        "}",
        "complete -F _hybrid hybrid",
    ]
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------- zsh


def _zsh(top: Sequence[Entry], commands: Sequence[ManualCommand]) -> str:
    described = [f"        {_quoted(c.name + ':' + c.what.replace(':', ' '))}" for c in commands]
    lines = [
        "#compdef hybrid",
        "_hybrid() {",
        "    local -a commands",
        "    commands=(",
        *described,
        "    )",
        "    if (( CURRENT == 2 )); then",
        "        if [[ $words[CURRENT] == -* ]]; then",
        "            _arguments -s " + " ".join(_zsh_option(e) for e in top if not e.is_hidden),
        "        else",
        "            _describe -t commands command commands",
        "        fi",
        "        return",
        "    fi",
        "    local command=$words[2]",
        "    shift words",
        "    (( CURRENT-- ))",
        "    case $command in",
    ]
    for command in commands:
        lines.append(f"    {command.name})")
        arguments = [_zsh_option(e) for e in command.options if not e.is_hidden]
        for entry in command.positions:
            arguments.append(_quoted(f":{_zsh_text(entry.value)}:{_zsh_values(entry)}"))
        lines.append("        _arguments -s \\\n            " + " \\\n            ".join(arguments))
        lines.append("        ;;")
    lines += [
        "    esac",
        "}",
        "if [[ $funcstack[1] == _hybrid ]]; then",
        '    _hybrid "$@"',
        "else",
        "    compdef _hybrid hybrid",
        "fi",
    ]
    return "\n".join(lines) + "\n"


def _zsh_option(entry: Entry) -> str:
    value = f":{_zsh_text(entry.value)}:{_zsh_values(entry)}" if entry.value else ""
    tail = f"[{_zsh_text(entry.help)}]{value}"
    return " ".join(_quoted(f"*{name}{tail}") for name in entry.names)


def _zsh_text(text: str) -> str:
    """Return a text without what `_arguments` reads as its own."""
    for sign in "\\[]:":
        text = text.replace(sign, "\\" + sign)
    return text


def _zsh_values(entry: Entry) -> str:
    if entry.choices:
        return f"({' '.join(entry.choices)})"
    return "_files" if entry.takes_file else " "


# ---------------------------------------------------------------------- fish


def _fish(top: Sequence[Entry], commands: Sequence[ManualCommand]) -> str:
    lines = ["# fish completion of hybrid", "complete -c hybrid -e"]
    lines += [
        f"complete -c hybrid -n __fish_use_subcommand -f -a {command.name} -d {_fish_text(command.what)}"
        for command in commands
    ]
    lines += _fish_options("__fish_use_subcommand", top)
    for command in commands:
        condition = f"'__fish_seen_subcommand_from {command.name}'"
        lines += _fish_options(condition, command.options)
        for entry in command.positions:
            if entry.choices:
                lines.append(f"complete -c hybrid -n {condition} -f -a '{' '.join(entry.choices)}'")
            elif entry.takes_file:
                lines.append(f"complete -c hybrid -n {condition} -F")
    return "\n".join(lines) + "\n"


def _fish_options(condition: str, entries: Sequence[Entry]) -> list[str]:
    lines = []
    for entry in entries:
        if entry.is_hidden:
            continue
        kinds = [_fish_kind(name) for name in entry.names]
        value = ""
        if entry.choices:
            value = f" -x -a '{' '.join(entry.choices)}'"
        elif entry.value:
            value = " -r -F" if entry.takes_file else " -x"
        lines.append(
            f"complete -c hybrid -n {condition} {' '.join(kinds)}{value} -d {_fish_text(entry.help)}"
        )
    return lines


def _fish_kind(name: str) -> str:
    if name.startswith("--"):
        return f"-l {name[2:]}"
    return f"-s {name[1:]}" if len(name) == 2 else f"-o {name[1:]}"


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# ---------------------------------------------------------------------- the manual


def print_text(options: argparse.Namespace) -> int:
    """Print the text that a command makes; return the exit status."""
    if options.command == "completion":
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
    ("HYBRID_CARRIER", "how elements go from card to card: straight, nccl or hosts, and no other way"),
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


# ---------------------------------------------------------------------- versions, for reports of faults

_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy")
_MISSING = "not installed"


def print_versions(as_json: bool) -> int:
    """Print the versions, a line each, or one JSON object; return the exit status."""
    found = versions()
    if as_json:
        print(json.dumps(found))
    else:
        print("\n".join(f"{name:<8} {text}" for name, text in found.items()))
    return 0


def versions() -> dict[str, str]:
    """Return what works here, by name: versions, or why something is not there."""
    return {
        "hybrid": f"{installed_version()} ({package_folder()})",
        "python": f"{platform.python_version()} ({platform.python_implementation()}, {sys.platform} "
        f"{platform.machine()})",
        "dd": _dd(),
        "numpy": _version("numpy"),
        "scipy": _version("scipy"),
        "numba": _version("numba"),
        "cupy": _cupy(),
        "device": _device(),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return _MISSING


def _dd() -> str:
    """Return the version of dd, that of CUDD where dd came with it, and what the environment chooses."""
    from mtbdd.base.errors import PackageError
    from mtbdd.diagrams.manager import VARIABLE, diagram_package

    found = _version("dd")
    if found == _MISSING:
        return found
    try:
        diagram_package("cudd")
    except PackageError:
        found += " without CUDD: diagrams are those of dd.autoref"
    else:
        found += f" with CUDD {import_module('dd.cudd').__version__}"
    asked = os.environ.get(VARIABLE)
    return f"{found} ({VARIABLE}={asked})" if asked else found


def _cupy() -> str:
    for name in _CUPY:
        try:
            return f"{distribution(name).version} ({name})"
        except PackageNotFoundError:
            continue
    return f"{_MISSING}; it comes with the extra 'gpu'"


def _device() -> str:
    """Return the names of the devices, or the driver's reason why there is none."""
    library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return f"none: no NVIDIA driver ({library} is not found)"
    status = driver.cuInit(0)
    if status:
        return f"none: the NVIDIA driver does not start (error {status} of cuInit)"
    count = ctypes.c_int()
    status = driver.cuDeviceGetCount(ctypes.byref(count))
    if status or not count.value:
        return "none: the NVIDIA driver finds no device"
    names = [_name(driver.cuDeviceGetName, number) for number in range(count.value)]
    number = ctypes.c_int()
    if not driver.cuDriverGetVersion(ctypes.byref(number)):
        names.append(f"driver for CUDA {number.value // 1000}.{number.value % 1000 // 10}")
    return ", ".join(names)


def _name(ask: Callable[..., int], number: int) -> str:
    text = ctypes.create_string_buffer(256)
    return "unnamed" if ask(text, 256, number) else text.value.decode(errors="replace")
