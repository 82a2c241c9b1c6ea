"""Products and steps with compressed matrices: tiles, pairs, choices, the tasks of [Tealdi13]."""
