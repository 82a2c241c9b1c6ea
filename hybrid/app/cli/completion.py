"""Completion for bash, zsh and fish, made from the parser."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.app.cli.grammar import Command, Entry, command_line


def completion(shell: str) -> str:
    """Return the text that a shell has to read for completion of the command line.

    Parameters
    ----------
    shell : {"bash", "zsh", "fish"}

    Returns
    -------
    str
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


def _bash(top: Sequence[Entry], commands: Sequence[Command]) -> str:
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


def _zsh(top: Sequence[Entry], commands: Sequence[Command]) -> str:
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


def _fish(top: Sequence[Entry], commands: Sequence[Command]) -> str:
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
