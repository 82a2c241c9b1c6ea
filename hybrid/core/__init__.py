"""What every other folder may use: backends by name, checked operands, directed rounding."""
