"""`hybrid automaton`: a formula of linear temporal logic as a deterministic automaton."""

from __future__ import annotations

import argparse

from hybrid.app.cli.check_pictures import draw_automaton, drawn_file
from hybrid.app.cli.console import Console
from hybrid.base.errors import InterchangeError, PropertyError, UnsupportedError
from hybrid.base.graph_drawing import dot_text
from hybrid.properties.automata.choosing import automaton_of
from hybrid.properties.automata.hoa import automaton_picture, hoa_text


def run(options: argparse.Namespace, console: Console) -> int:
    """Translate, draw and print; return the exit status."""
    with drawn_file(options.plot, "--plot", "an automaton") as file:
        try:
            automaton = automaton_of(options.formula, options.automaton_tool)
        except (InterchangeError, PropertyError, UnsupportedError) as error:
            console.error(str(error))
            return 1
        if file is not None:
            draw_automaton(automaton, file, console)
    text = dot_text(automaton_picture(automaton)) if options.dot else hoa_text(automaton)
    console.print(text.rstrip("\n"))
    return 0
