"""The command line's grammar: sub-commands, options, help."""

from __future__ import annotations

import argparse

from hybrid.cli.automaton_arguments import add_automaton, add_automaton_tool
from hybrid.cli.examples_arguments import add_examples
from hybrid.cli.explore_arguments import add_explore
from hybrid.cli.limit_arguments import add_limits
from hybrid.cli.picture_arguments import add_check_pictures, add_diagram_picture, add_graph_picture
from hybrid.cli.simulate_arguments import add_simulate
from hybrid.core.representations import REPRESENTATIONS

_METHODS = ("auto", "jacobi", "jor", "power", "gauss-seidel", "bicgstab", "interval", "optimistic")


def parse_arguments(arguments: list[str] | None) -> argparse.Namespace:
    """Return the parsed command line; argparse exits with status 2 on wrong usage."""
    parser = argparse.ArgumentParser(
        prog="hybrid",
        description="Numerical probabilistic model checking on compressed symbolic matrices.",
        epilog="Exit status: 0 all answered, 1 a property could not be answered, 2 wrong usage or model.",
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(
        dest="command",
        metavar="{check,levels,explore,info,export,simulate,plot-matrix,graph,verify,automaton,examples}",
    )

    check = commands.add_parser("check", help="check properties of a model")
    _model_options(check)
    check.add_argument(
        "property",
        nargs="?",
        metavar="PROPERTY|FILE",
        help="a property, or a file of properties; without it the model is only built",
    )
    check.add_argument(
        "--property",
        dest="chosen",
        action="append",
        default=[],
        metavar="NAME|INDEX",
        help="check only this property of the file: its name, or its place counted from 0; may be repeated",
    )
    check.add_argument(
        "--json-lines",
        action="store_true",
        help="print one JSON object a property, a line each, as soon as it is answered",
    )
    check.add_argument(
        "--csv", metavar="FILE", help="also write a table of constants and answers, one line an answer"
    )
    check.add_argument(
        "--values",
        metavar="FILE.csv|.npz",
        help="also write the value of every state and its bounds, of one property: a table of variables, "
        "value, lower and upper, or the arrays value, lower, upper and states",
    )
    check.add_argument(
        "--scheduler",
        metavar="FILE",
        help="also write a scheduler of an MDP that attains the answer, as CSV, or as JSON if FILE ends with "
        ".json: of every state the action of its choice, empty where the command has no label, and the "
        "layer, which tells such choices apart",
    )
    check.add_argument(
        "--witness", action="store_true", help="also show a path why E [ ] holds, or why A [ ] does not"
    )
    check.add_argument(
        "--certificate",
        metavar="FILE",
        help="also write a certificate of the answer to one property, which `hybrid verify` checks",
    )
    check.add_argument(
        "--engine",
        default="hybrid",
        choices=("hybrid", "explicit", "symbolic"),
        help="the matrix compressed, or written out: on the cpu, with --backend gpu on the device",
    )
    check.add_argument(
        "--storage",
        default="auto",
        metavar="NAME",
        help="format of the explicit engine's matrix: with --backend gpu auto, msr, cmsr, msr-wl, cmsr-hwl, "
        "msr-scan, sell, cusparse and the others of docs/explicit.md; on the cpu csr alone (default auto)",
    )
    _matrix_options(check)
    check.add_argument(
        "--method",
        default="auto",
        choices=_METHODS,
        help="auto, interval, optimistic: answers with bounds; the others: estimates without",
    )
    check.add_argument(
        "--omega", type=float, metavar="W", help="relaxation of jor (default 0.9) or gauss-seidel (default 1)"
    )
    check.add_argument("--epsilon", type=float, default=1e-8, metavar="E", help="precision (default 1e-8)")
    check.add_argument(
        "--absolute", action="store_true", help="epsilon is absolute, not relative to the value"
    )
    check.add_argument(
        "--max-iters",
        type=int,
        default=100_000,
        metavar="K",
        help="give up after K iterations (default 100000)",
    )

    add_automaton_tool(check)
    add_check_pictures(check)

    levels = commands.add_parser("levels", help="memory of every injection level, and the choice among them")
    _model_options(levels)
    _matrix_options(levels)
    levels.add_argument(
        "--plot", metavar="FILE", help="draw the curve: .png, .svg, .pdf, or .html for the page of explore"
    )
    levels.add_argument(
        "--measure", action="store_true", help="time a product at every level that fits in memory"
    )

    explore = commands.add_parser("explore", help="a page to look at the levels, the curves and the blocks")
    _model_options(explore)
    add_explore(explore)

    info = commands.add_parser("info", help="states, transitions, nodes, terminals, memory")
    _model_options(info)

    add_diagram_picture(info)

    export = commands.add_parser("export", help="write the model in other tools' formats")
    _model_options(export)
    export.add_argument(
        "--to",
        nargs="+",
        required=True,
        metavar="FILE",
        help="files by the ends of their names: .umb .drn .tra .sta .lab .srew .trew .pexp .npz .mtx .dot "
        ".dd; texts also as .gz or .xz",
    )
    export.add_argument(
        "--force", action="store_true", help="write out models that seem too large, and large drawings"
    )

    plot = commands.add_parser("plot-matrix", help="where the matrix has entries, and how local it is")
    _model_options(plot)
    plot.add_argument("--bfs", action="store_true", help="also with the states in breadth-first order")
    plot.add_argument("-o", "--output", metavar="FILE", help="draw the structure, as .png, .svg or .pdf")
    plot.add_argument(
        "--cells", type=int, default=600, metavar="K", help="cells of the plot a side (default 600)"
    )

    graph = commands.add_parser("graph", help="strongly connected components and maximal end components")
    _model_options(graph)
    add_graph_picture(graph)
    graph.add_argument("--scc", action="store_true", help="strongly connected components (default: both)")
    graph.add_argument("--mec", action="store_true", help="maximal end components")
    graph.add_argument("--backend", default="auto", choices=("auto", "cpu", "gpu", "symbolic"))
    graph.add_argument(
        "--variant",
        default="auto",
        metavar="NAME[,OPTION=VALUE]",
        help="cpu: tarjan, scipy; gpu: fbt, max-id, multistep and options, as in fbt,segment-interval=0",
    )

    add_simulate(commands.add_parser("simulate", help="sample paths of a model, and estimates from them"))

    add_examples(commands.add_parser("examples", help="the models that come with the package, to copy"))

    verify = commands.add_parser("verify", help="check a certificate, apart from all solvers")
    verify.add_argument("model", metavar="MODEL", help="the model that the certificate is about")
    verify.add_argument("certificate", metavar="FILE", help="what check --certificate FILE has written")
    verify.add_argument(
        "--const", default="", metavar="N=4,K=2", help="the values of constants that were given to check"
    )
    verify.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    verify.add_argument("--quiet", action="store_true", help="no progress, no warnings")

    add_automaton(commands.add_parser("automaton", help="a formula of LTL as a deterministic automaton"))

    namespace = parser.parse_args(arguments)
    if namespace.command is None and not namespace.version:
        parser.error(f"a command is needed: {', '.join(commands.choices)}")
    return namespace


def _model_options(parser: argparse.ArgumentParser) -> None:
    """Add what every command takes."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a dtmc, ctmc or mdp: a text in the PRISM language, or a file that ends in .umb, .drn, .tra, "
        ".pexp, .npz or .dd",
    )
    parser.add_argument(
        "--const",
        default="",
        metavar="N=4,K=2",
        help="values of the constants that the files leave open; for check also ranges, N=2:2:10",
    )
    parser.add_argument("--no-fix-deadlocks", action="store_true", help="refuse states without successors")
    parser.add_argument(
        "--order",
        default="auto",
        choices=("auto", "model", "reversed", "force"),
        help="variable order: the text's unless another is far smaller (default), the text's, with modules "
        "last to first, or one that draws related variables together",
    )
    parser.add_argument(
        "--build",
        default="symbolic",
        choices=("symbolic", "explicit"),
        help="make diagrams of the text's commands (default), or list its states and compress the list: "
        "quicker for models of up to some million states without structure",
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
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    parser.add_argument("--quiet", action="store_true", help="no progress, no warnings")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="progress as plain lines where there is no terminal"
    )


def _matrix_options(parser: argparse.ArgumentParser) -> None:
    """Add what concerns the numerical matrix."""
    parser.add_argument("--backend", default="auto", choices=("auto", "cpu", "gpu", "reference"))
    parser.add_argument(
        "--level",
        default="auto",
        type=_level,
        metavar="auto|min-memory|min-time|N",
        help="injection level: a policy or the number of variables above it",
    )
    parser.add_argument(
        "--representation",
        default="row-types",
        choices=REPRESENTATIONS,
        help="how a compressed matrix is held: in row types, the engine's own form (default), or in tasks of "
        "256 rows, the published one",
    )


def _level(text: str) -> str | int:
    """Read a level; argparse turns the error into a usage message."""
    if text in ("auto", "min-memory", "min-time"):
        return text
    if text.isascii() and text.isdigit():
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not auto, min-memory, min-time or a number")
