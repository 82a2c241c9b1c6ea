"""The options of `hybrid automaton`."""

from __future__ import annotations

import argparse

from hybrid.app.cli.common_arguments import add_option, add_output
from hybrid.app.cli.limit_arguments import add_limits


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
