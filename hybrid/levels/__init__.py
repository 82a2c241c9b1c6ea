"""Injection levels: path counting, the level curve, the choice of a level and its report."""
