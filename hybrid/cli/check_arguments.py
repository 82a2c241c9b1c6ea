"""The options of `hybrid check`."""

from __future__ import annotations

import argparse

from hybrid.cli.automaton_arguments import add_automaton_tool
from hybrid.cli.common_arguments import add_matrix, add_model
from hybrid.cli.picture_arguments import add_check_pictures
from hybrid.cli.prism_spellings import add_check_spellings
from hybrid.cli.property_arguments import add_properties
from hybrid.core.methods import METHODS
from hybrid.core.storages import HOST_STORAGES, STORAGES


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
    files.add_argument(
        "--values",
        metavar="FILE.csv|.npz",
        help="also write the value of every state and its bounds, of one property: a table of variables, "
        "value, lower and upper, or the arrays value, lower, upper and states; with --distributed each "
        "process writes a part of it",
    )
    files.add_argument(
        "--scheduler",
        metavar="FILE.csv|.json",
        help="also write a scheduler of an MDP that attains the answer, as a table or as JSON: "
        "of every state the action of its choice, empty where the command has no label, the layer, "
        "and the command in the text with its guard, which tell such choices apart",
    )
    files.add_argument(
        "--certificate",
        metavar="FILE",
        help="also write a certificate of the answer to one property, which `hybrid verify` checks",
    )
    parser.add_argument(
        "--witness", action="store_true", help="also show a path why E [ ] holds, or why A [ ] does not"
    )
    add_solution(parser)
    parser.add_argument(
        "--distributed",
        action="store_true",
        help="be one of the processes that `mpiexec -n P hybrid check ...` starts, which share the states "
        "and solve together; the first prints the answers (needs mpi4py)",
    )
    kept = parser.add_argument_group("runs that last long")
    kept.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="keep iterations in a folder while they run; the same command goes on where the last one was, "
        "with another engine, backend or number of processes if you like",
    )
    kept.add_argument(
        "--every",
        type=float,
        metavar="MIN",
        help="minutes between two states that are kept (default 10)",
    )
    kept.add_argument(
        "--spill",
        metavar="DIR",
        help="hold vectors and other long arrays in files of a folder, which vanish with the process, where "
        "memory is too small for them (hybrid engine on the cpu)",
    )
    parser.add_argument(
        "--bisimulation",
        action="store_true",
        help="answer each property from the quotient by strong bisimulation: states that it cannot tell "
        "apart become one; takes the list of all transitions",
    )
    parser.add_argument("--exact", action="store_true", help="answer in rational numbers, or not at all")
    add_automaton_tool(parser)
    add_check_pictures(parser)
    add_check_spellings(parser)


def add_solution(parser: argparse.ArgumentParser) -> None:
    """Add how a property is answered: engine, storage, matrix, method, precision."""
    solution = parser.add_argument_group("how it is solved")
    solution.add_argument(
        "--engine",
        default="hybrid",
        choices=("auto", "hybrid", "explicit", "symbolic"),
        help="the matrix compressed, or written out: on the cpu, with --backend gpu on the device; auto "
        "writes out what diagrams do not compress, and says so",
    )
    solution.add_argument(
        "--storage",
        default="auto",
        metavar="NAME",
        help=f"format of the explicit engine's matrix: on the cpu {', '.join(HOST_STORAGES)} alone; with "
        f"--backend gpu {', '.join(STORAGES)} (default auto)",
    )
    add_matrix(solution)
    solution.add_argument(
        "--method",
        default="auto",
        choices=tuple(METHODS),
        help="auto, interval, optimistic: answers with bounds; the others: estimates without",
    )
    solution.add_argument(
        "--omega", type=float, metavar="W", help="relaxation of jor (default 0.9) or gauss-seidel (default 1)"
    )
    solution.add_argument("--epsilon", type=float, default=1e-8, metavar="E", help="precision (default 1e-8)")
    solution.add_argument(
        "--absolute", action="store_true", help="epsilon is absolute, not relative to the value"
    )
    solution.add_argument(
        "--pareto-epsilon",
        type=float,
        default=1e-3,
        metavar="E",
        help="precision of Pareto curves of multi(...), in parts of each objective's range (default 1e-3)",
    )
    solution.add_argument(
        "--max-iters",
        type=int,
        default=100_000,
        metavar="K",
        help="give up after K iterations (default 100000)",
    )
