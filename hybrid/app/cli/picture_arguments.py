"""The options of pictures, beside those of the commands that draw them."""

from __future__ import annotations

import argparse


def add_check_pictures(parser: argparse.ArgumentParser) -> None:
    """Add the pictures of `hybrid check`."""
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


def add_graph_picture(parser: argparse.ArgumentParser) -> None:
    """Add the picture of `hybrid graph`."""
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="draw the graph of a small model, as .svg, .png, .pdf, or .dot: states with the values of "
        "variables and labels, initial ones with a double line, transitions with probabilities or rates",
    )


def add_diagram_picture(parser: argparse.ArgumentParser) -> None:
    """Add the picture of `hybrid info`."""
    parser.add_argument(
        "--diagram",
        metavar="FILE",
        help="draw the offset-labelled MTBDD of a small chain, as .svg, .png, .pdf, or .dot",
    )
