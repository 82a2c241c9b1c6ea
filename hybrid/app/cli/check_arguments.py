"""The options of `hybrid check`."""

from __future__ import annotations

import argparse

from hybrid.app.cli.common_arguments import add_matrix, add_model, add_option
from hybrid.app.cli.picture_arguments import add_check_pictures
from hybrid.app.cli.prism_spellings import add_check_spellings
from hybrid.app.cli.property_arguments import add_properties


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
    add_option(parser, "witness")
    add_solution(parser)
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
    add_check_pictures(parser)
    add_check_spellings(parser)


def add_solution(parser: argparse.ArgumentParser) -> None:
    """Add how a property is answered: engine, storage, matrix, method, precision."""
    solution = parser.add_argument_group("how it is solved")
    add_option(solution, "engine")
    add_option(solution, "storage")
    add_matrix(solution)
    add_option(solution, "method")
    for keyword in ("omega", "epsilon", "absolute", "pareto_epsilon", "max_iterations"):
        add_option(solution, keyword)
