"""State of one run: its options, its statistics, the values of all states with their bounds."""
