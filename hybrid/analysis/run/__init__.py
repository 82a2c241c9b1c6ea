"""What one run carries along: its options, its account, the values of all states with their bounds."""
