"""The command line's grammar: the commands, each with its options, its help and examples."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from hybrid.app.cli.automaton_arguments import add_automaton
from hybrid.app.cli.check_arguments import add_check
from hybrid.app.cli.command_arguments import (
    add_export,
    add_graph,
    add_info,
    add_levels,
    add_plot_matrix,
    add_verify,
    model_of_export,
)
from hybrid.app.cli.command_parser import CommandParser
from hybrid.app.cli.examples_arguments import add_examples
from hybrid.app.cli.explore_arguments import add_explore
from hybrid.app.cli.manual_arguments import add_completion, add_help, add_man
from hybrid.app.cli.simulate_arguments import add_simulate

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import NoReturn

EXIT_STATUS = (
    (0, "everything was answered"),
    (1, "a property could not be answered, or memory did not suffice"),
    (2, "wrong usage, a model that does not parse or build, or a file that cannot be written"),
    (130, "interrupted"),
    (143, "terminated"),
)


FIRST_STEPS = (
    ("the models that the examples of the help speak of", "hybrid examples --to examples"),
    ("a probability", "hybrid check examples/tandem.prism 'P=? [ F<=1 sc=c ]' --const c=5"),
    (
        "a table of the values of all states",
        "hybrid check examples/jobs.prism examples/jobs.props --prop 2 --const N=3 --values jobs.csv",
    ),
)
"""Examples of the overview."""


class _Command:
    """A command: what it is for, the positions after its name, its options, and examples."""

    # No class of `typing` or `dataclasses`, which take longer to import than all else that help needs.
    def __init__(
        self,
        what: str,
        positions: str,
        add: Callable[[argparse.ArgumentParser], None],
        examples: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.what, self.positions, self.add, self.examples = what, positions, add, examples


COMMANDS: dict[str, _Command] = {
    "check": _Command(
        "check properties of a model",
        "MODEL [PROPERTY|FILE]",
        add_check,
        (
            ("a property", "hybrid check examples/tandem.prism 'P=? [ F<=1 sc=c ]' --const c=5"),
            (
                "the second property of a file",
                "hybrid check examples/brp.prism examples/brp.props --prop 2 --const N=4,MAX=2",
            ),
            ("which properties there are", "hybrid check examples/jobs.prism examples/jobs.props --list"),
            (
                "an experiment, and a table of its answers",
                "hybrid check examples/tandem.prism 'S=? [ sc=c ]' --const c=2:2:6 --csv full.csv",
            ),
        ),
    ),
    "levels": _Command(
        "memory of every injection level, and the choice among them",
        "MODEL",
        add_levels,
        (
            ("the levels of a model", "hybrid levels examples/kanban.prism --const t=1"),
            (
                "what four devices would hold and exchange",
                "hybrid levels examples/kanban.prism --const t=3 --parts 4",
            ),
        ),
    ),
    "explore": _Command(
        "a page to look at the levels, the curves and the blocks",
        "MODEL --to FILE.html",
        add_explore,
        (
            (
                "four sizes beside each other",
                "hybrid explore examples/kanban.prism --const t=1:4 --to kanban.html",
            ),
        ),
    ),
    "info": _Command(
        "states, transitions, nodes, terminals, memory",
        "MODEL",
        add_info,
        (("sizes as one JSON object", "hybrid info examples/tandem.prism --const c=5 --json"),),
    ),
    "export": _Command(
        "write the model in other tools' formats",
        "MODEL --to FILE...",
        add_export,
        (
            (
                "for PRISM and for Storm",
                "hybrid export examples/tandem.prism --const c=5 --to tandem.tra tandem.sta tandem.drn",
            ),
        ),
    ),
    "simulate": _Command(
        "sample paths of a model, and estimates from them",
        "MODEL [PROPERTY|FILE]",
        add_simulate,
        (
            ("a path", "hybrid simulate examples/tandem.prism --const c=5 --steps 10"),
            (
                "an estimate",
                "hybrid simulate examples/tandem.prism 'P=? [ F<=1 sc=c ]' --const c=5 --paths 1000",
            ),
            (
                "an estimate of the first property of a file",
                "hybrid simulate examples/brp.prism examples/brp.props --prop 1 --const N=4,MAX=2",
            ),
        ),
    ),
    "plot-matrix": _Command(
        "where the matrix has entries, and how local it is",
        "MODEL",
        add_plot_matrix,
        (
            (
                "a picture of both orders",
                "hybrid plot-matrix examples/tandem.prism --const c=5 --bfs -o m.png",
            ),
        ),
    ),
    "graph": _Command(
        "strongly connected components and maximal end components",
        "MODEL",
        add_graph,
        (("both", "hybrid graph examples/coin.prism --const K=2"),),
    ),
    "verify": _Command(
        "check a certificate, apart from all solvers",
        "MODEL FILE",
        add_verify,
        (
            (
                "an answer and its certificate",
                "hybrid check examples/jobs.prism 'Rmin=? [ F \"done\" ]' --const N=2 --certificate a.cert",
            ),
            ("whether it holds", "hybrid verify examples/jobs.prism a.cert --const N=2"),
        ),
    ),
    "automaton": _Command(
        "a formula of linear temporal logic as a deterministic automaton",
        "FORMULA",
        add_automaton,
        (
            ("in the HOA format", "hybrid automaton 'G (request => (F answer))'"),
            ("a drawing for Graphviz", "hybrid automaton '(G F a) => (G F b)' --dot"),
        ),
    ),
    "examples": _Command(
        "the models that come with the package, to copy",
        "[NAME...]",
        add_examples,
        (("all of them, into a folder", "hybrid examples --to models"),),
    ),
    "completion": _Command(
        "print what lets a shell complete commands, options and files",
        "bash|zsh|fish",
        add_completion,
        (
            ("bash, in ~/.bashrc", 'eval "$(hybrid completion bash)"'),
            ("zsh, in ~/.zshrc after compinit", 'eval "$(hybrid completion zsh)"'),
            ("fish", "hybrid completion fish > ~/.config/fish/completions/hybrid.fish"),
        ),
    ),
    "man": _Command(
        "print the manual page, of all commands",
        "",
        add_man,
        (("read it", "hybrid man | man -l -"),),
    ),
    "help": _Command(
        "show the help of a command", "[COMMAND]", lambda parser: add_help(parser, tuple(COMMANDS))
    ),
}
"""By name, in the order of the help."""


def build_parser() -> CommandParser:
    """Return the parser of the whole command line."""
    parser = CommandParser(
        prog="hybrid",
        usage="hybrid COMMAND ...",
        description="Numerical probabilistic model checking on compressed symbolic matrices.",
        epilog="'hybrid help COMMAND' shows the options of a command, with examples.\n\nexit status:\n"
        + "\n".join(f"  {status:<5} {what}" for status, what in EXIT_STATUS),
        examples=FIRST_STEPS,
    )
    parser.add_argument(
        "--version",
        "-version",
        action="store_true",
        help="print the versions of what works here, and the device, and end",
    )
    parser.add_argument(
        "--json", dest="json_version", action="store_true", help="with --version: as one JSON object"
    )
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=CommandParser
    )
    for name, command in COMMANDS.items():
        command.add(
            commands.add_parser(
                name,
                prog=f"hybrid {name}",
                help=command.what,
                description=f"{command.what[:1].upper()}{command.what[1:]}.",
                usage=f"hybrid {name} {command.positions} [options]".replace("  ", " "),
                examples=command.examples,
            )
        )
    return parser


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the parsed command line; argparse exits with status 2 on wrong usage."""
    parser = build_parser()
    found = argparse.ArgumentParser.parse_args(parser, arguments)
    if found.command is None and not found.version:
        *names, last = COMMANDS
        parser.error(f"a command is needed: {', '.join(names)} or {last}")
    if found.json_version and not found.version:
        parser.error("--json stands behind the command: hybrid check MODEL --json")
    if found.command == "help":
        parser.parse_args([*([found.topic] if found.topic else []), "--help"])
    if getattr(found, "property_text", None) is not None:
        if found.property is not None:
            parser.error(f"expected one text of properties, got {found.property!r} and -pf; leave one out")
        found.property = found.property_text
    if found.command == "export" and found.model is None:
        found.model = model_of_export(found.to)
        if found.model is None:
            parser.error("export: expected a model as well; write hybrid export MODEL --to FILE")
    _read_standard_input(found, parser.error)
    return found


def _read_standard_input(found: argparse.Namespace, fail: Callable[[str], NoReturn]) -> None:
    """Let `-` stand for standard input."""
    positions = [name for name in ("model", "property") if getattr(found, name, None) == "-"]
    if len(positions) > 1:
        fail("standard input is one text: '-' stands for the model or for the properties")
    if positions:
        from mtbdd.language.sources import StandardInput

        setattr(found, positions[0], StandardInput())
