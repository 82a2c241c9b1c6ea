"""The command line's grammar: the commands, each with its options, its help and examples."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from hybrid.app.cli.common_arguments import (
    CommandParser,
    add_check_spellings,
    add_constants,
    add_limits,
    add_matrix,
    add_model,
    add_option,
    add_output,
    add_properties,
    add_simulate,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import NoReturn

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


def add_explore(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_model(parser, ", or ranges of them, N=2:2:10")
    parser.add_argument(
        "--to",
        required=True,
        metavar="FILE.html",
        help="the page; constants with ranges put models beside each other",
    )
    parser.add_argument("--backend", default="auto", choices=("auto", "cpu", "gpu", "reference"))
    _add_measure(parser)
    parser.add_argument("--title", default="", help="heading of the page (default the model's name)")


def add_examples(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="examples, such as kanban (default all of them)"
    )
    parser.add_argument(
        "--to",
        metavar="FOLDER",
        help="copy models and properties there instead of listing them; it is made if need be",
    )
    parser.add_argument("--force", action="store_true", help="replace files that are there")
    add_output(parser)


def add_cards(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hybrid cards`."""
    parser.add_argument("--measure", action="store_true", help="time a copy from every card to every other")
    add_output(parser)


EXPORTED = (".umb", ".drn", ".tra", ".sta", ".lab", ".srew", ".trew", ".pexp", ".mtx", ".dot", ".dd")
"""Suffixes of files that `hybrid export` writes."""

MOST_PARTS = 64
"""Parts that `hybrid levels` plans at most: the search for good ones takes longer with each."""


def add_levels(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hybrid levels`."""
    add_model(parser)
    add_matrix(parser)
    parser.add_argument("--plot", metavar="FILE.png|.html", help="draw the curve")
    _add_measure(parser)
    parser.add_argument(
        "--parts",
        type=_parts,
        metavar="P",
        help="cut the states into P parts, as for several devices: states, transitions and what each part "
        "needs of the others",
    )


def _add_measure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--measure",
        action="store_true",
        help="time a product at every level that fits in memory, and weigh levels that are built",
    )


def add_info(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hybrid info`."""
    add_model(parser)
    parser.add_argument(
        "--diagram",
        metavar="FILE",
        help="draw the offset-labelled MTBDD of a small chain, as .svg, .png, .pdf, or .dot",
    )


def add_export(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hybrid export`."""
    add_model(parser, nargs="?")
    parser.add_argument(
        "--to",
        nargs="+",
        action="extend",
        required=True,
        metavar="FILE",
        help=f"files by the ends of their names: {' '.join(EXPORTED)}; texts also as .gz or .xz",
    )
    parser.add_argument(
        "--force", action="store_true", help="write out models that seem too large, and large drawings"
    )


def model_of_export(files: list[str]) -> str | None:
    """Take the model out of the files behind `--to`, where it stands behind them; None if it does not."""
    if len(files) < 2:
        return None
    others = [name for name in files if not name.removesuffix(".gz").removesuffix(".xz").endswith(EXPORTED)]
    found = others[0] if others else files[-1]
    files.remove(found)
    return found


def add_distribution(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hybrid distribution`."""
    add_model(parser)
    parser.add_argument("property", metavar="PROPERTY", help='the mean, R{"name"}=? [ F states ], of a chain')
    parser.add_argument(
        "--quantiles",
        type=_probabilities,
        default=[],
        metavar="P,...",
        help="the least rewards that are enough with these probabilities",
    )
    parser.add_argument(
        "--tail-means",
        type=_probabilities,
        default=[],
        metavar="P,...",
        help="the means of what is beyond these quantiles (conditional value at risk)",
    )
    parser.add_argument(
        "--tail",
        type=float,
        default=1e-6,
        metavar="P",
        help="probability beyond which the table may end (default 1e-6)",
    )
    parser.add_argument("--csv", metavar="FILE", help="write the whole table")
    parser.add_argument("--plot", metavar="FILE", help="draw the distribution, as .png, .svg or .pdf")
    for keyword in ("engine", "backend", "epsilon", "max_iterations"):
        add_option(parser, keyword)


def _probabilities(text: str) -> list[float]:
    """Read probabilities; argparse turns the error into a usage message."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if found and all(0.0 < p < 1.0 for p in found):
        return found
    raise argparse.ArgumentTypeError(f"expected numbers between 0 and 1 with commas, got {text!r}")


def add_plot_matrix(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hybrid plot-matrix`."""
    add_model(parser)
    parser.add_argument("--bfs", action="store_true", help="also with the states in breadth-first order")
    parser.add_argument("-o", "--output", metavar="FILE", help="draw the structure, as .png, .svg or .pdf")
    parser.add_argument(
        "--cells", type=int, default=600, metavar="K", help="cells of the plot a side (default 600)"
    )


def add_graph(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hybrid graph`."""
    add_model(parser)
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="draw the graph of a small model, as .svg, .png, .pdf, or .dot: states with the values of "
        "variables and labels, initial ones with a double line, transitions with probabilities or rates",
    )
    parser.add_argument("--scc", action="store_true", help="strongly connected components (default: both)")
    parser.add_argument("--mec", action="store_true", help="maximal end components")
    parser.add_argument(
        "--backend",
        default="auto",
        choices=("auto", "cpu", "gpu", "symbolic"),
        help="what searches: chosen by size (default), the cores, the device, or the decision diagrams",
    )
    parser.add_argument(
        "--variant",
        default="auto",
        metavar="NAME",
        help="cpu: tarjan, scipy; gpu: max-id, and fb, fbt, bfbt, the published searches",
    )


def add_verify(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hybrid verify`."""
    parser.add_argument(
        "model", metavar="MODEL", help="the model that the certificate is about, or - for standard input"
    )
    parser.add_argument("certificate", metavar="FILE", help="what check --certificate FILE has written")
    add_constants(parser, "the values of constants that were given to check")
    add_limits(parser)
    add_output(parser)


def _parts(text: str) -> int:
    """Read a number of parts."""
    if not text.isdecimal() or not 1 <= int(text[:9]) <= MOST_PARTS or len(text) > 9:
        raise argparse.ArgumentTypeError(f"expected a number of parts, 1 to {MOST_PARTS:,}, got {text!r}")
    return int(text)


def add_check(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_model(parser, ", or ranges of them, N=2:2:10")
    which = add_properties(parser, "the model is only built")
    which.add_argument(
        "--json-lines",
        action="store_true",
        help="print one JSON object a property, a line each, as soon as it is answered",
    )
    files = parser.add_argument_group("files to write")
    files.add_argument(
        "--csv", metavar="FILE", help="also write a table of constants and answers, one line an answer"
    )
    add_option(files, "values")
    add_option(files, "scheduler")
    files.add_argument(
        "--certificate",
        metavar="FILE",
        help="also write a certificate of the answer to one property, which `hybrid verify` checks",
    )
    parser.add_argument(
        "--build-full",
        action="store_true",
        help="find the reachable states behind those that settle every question, too; values, schedulers, "
        "certificates and paths of all states have them anyway",
    )
    add_option(parser, "witness")
    solution = parser.add_argument_group("how it is solved")
    add_option(solution, "engine")
    add_option(solution, "storage")
    add_matrix(solution)
    for keyword in ("method", "omega", "epsilon", "absolute", "pareto_epsilon", "max_iterations"):
        add_option(solution, keyword)
    parser.add_argument(
        "--distributed",
        action="store_true",
        help="be one of the processes that `mpiexec -n P hybrid check ...` starts, which share the states "
        "and solve together; the first prints the answers (needs mpi4py)",
    )
    kept = parser.add_argument_group("runs that last long")
    add_option(kept, "checkpoint")
    add_option(kept, "checkpoint_minutes")
    add_option(kept, "spill")
    add_option(parser, "bisimulation")
    add_option(parser, "exact")
    add_option(parser, "automaton_tool")
    pictures = parser.add_argument_group("pictures", "as .png, .svg or .pdf")
    pictures.add_argument(
        "--plot",
        metavar="FILE",
        help="draw an experiment: values over the constant with the most values, a line a combination of the "
        "others; or the Pareto curve of one multi(...) that asks for two or three values",
    )
    pictures.add_argument("--plot-over", metavar="NAME", help="the constant on the axis of --plot")
    pictures.add_argument(
        "--plot-convergence",
        metavar="FILE",
        help="draw how the iteration of one property converges, on a logarithmic axis",
    )
    add_check_spellings(parser)


def add_automaton(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "formula",
        metavar="FORMULA",
        help="a path formula of the property language, like 'G (request => (F answer))'; names, labels and "
        "comparisons are its atomic propositions",
    )
    parser.add_argument(
        "--dot", action="store_true", help="print a drawing in Graphviz's language instead of HOA"
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="draw a small automaton, as .svg, .png, .pdf, or .dot, beside the text"
    )
    add_option(parser, "automaton_tool")
    add_limits(parser)
    add_output(parser)


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
    "distribution": _Command(
        "how likely each reward of a chain is, quantiles and tails",
        "MODEL PROPERTY",
        add_distribution,
        (
            (
                "how many parts come in until the first one is ready in the fourth cell",
                "hybrid distribution examples/kanban.prism 'R{\"throughput\"}=? [ F z4=1 ]' --const t=1 "
                "--quantiles 0.5,0.99 --tail-means 0.9",
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
    "cards": _Command(
        "cards of this machine, which reach each other, NCCL and MPI",
        "",
        add_cards,
        (("with rates from card to card", "hybrid cards --measure"),),
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
        "print the manual page, of all commands", "", add_man, (("read it", "hybrid man | man -l -"),)
    ),
    "help": _Command(
        "show the help of a command", "[COMMAND]", lambda parser: add_help(parser, tuple(COMMANDS))
    ),
}
"""By name, in the order of the help."""


def build_parser(only: str | None = None) -> CommandParser:
    """Return the parser of the whole command line, or of the part with a single command."""
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
        if only not in (None, name):
            continue
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
    given = sys.argv[1:] if arguments is None else arguments
    command = given[0] if given and given[0] in COMMANDS else None
    parser = build_parser(None if command == "help" else command)
    found = argparse.ArgumentParser.parse_args(parser, given)
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
        from mtbdd.language.tokens import StandardInput

        setattr(found, positions[0], StandardInput())
