"""Linear temporal logic and deterministic automata: formulas, translation, files in the HOA format."""
