"""The options of `hybrid simulate`."""

from __future__ import annotations

import argparse

from hybrid.app.cli.command_parser import JoinTexts
from hybrid.app.cli.common_arguments import add_constants, add_output
from hybrid.app.cli.limit_arguments import add_limits
from hybrid.app.cli.property_arguments import add_properties


def add_simulate(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a model in the PRISM language (dtmc, ctmc or mdp), or - for one on standard input",
    )
    add_properties(parser, "the paths are written")
    add_constants(parser, "values of the constants that the texts leave open")
    parser.add_argument(
        "--steps",
        type=int,
        metavar="N",
        help="steps of every path (default 100); with a property at most so many (default 100000)",
    )
    parser.add_argument(
        "--paths", type=int, metavar="K", help="how many paths (default 1; with a property 10000)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="S", help="of the random numbers (default 0); a seed repeats"
    )
    parser.add_argument("--until", type=float, metavar="T", help="end paths of a ctmc at this time")
    parser.add_argument(
        "--start",
        default="",
        action=JoinTexts,
        const=",",
        metavar="x=1,y=2",
        help="values of variables in the first state, instead of their initial ones; may be repeated",
    )
    parser.add_argument("--rewards", action="store_true", help="also write what the paths earn")
    parser.add_argument("--to", metavar="FILE.csv", help="where to write the paths (default standard output)")
    parser.add_argument(
        "--confidence", type=float, metavar="C", help="of the interval of an estimate (default 0.99)"
    )
    add_limits(parser)
    add_output(parser)
