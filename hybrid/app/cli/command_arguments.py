"""The options of the smaller commands, a function each."""

from __future__ import annotations

import argparse

from hybrid.app.cli.common_arguments import add_constants, add_matrix, add_model, add_output
from hybrid.app.cli.limit_arguments import add_limits
from hybrid.app.cli.picture_arguments import add_diagram_picture, add_graph_picture

EXPORTED = (
    ".umb",
    ".drn",
    ".tra",
    ".sta",
    ".lab",
    ".srew",
    ".trew",
    ".pexp",
    ".mtx",
    ".dot",
    ".dd",
)
"""How names of files end that `hybrid export` writes."""

MOST_PARTS = 64
"""Parts that `hybrid levels` plans at most: the search for good ones takes longer with each."""


def add_levels(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hybrid levels`."""
    add_model(parser)
    add_matrix(parser)
    parser.add_argument("--plot", metavar="FILE.png|.html", help="draw the curve")
    parser.add_argument(
        "--measure",
        action="store_true",
        help="time a product at every level that fits in memory, and weigh levels that are built",
    )
    parser.add_argument(
        "--parts",
        type=_parts,
        metavar="P",
        help="cut the states into P parts, as for several devices: states, transitions and what each part "
        "needs of the others",
    )


def add_info(parser: argparse.ArgumentParser) -> None:
    """Add the options of `hybrid info`."""
    add_model(parser)
    add_diagram_picture(parser)


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
    add_graph_picture(parser)
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
