"""What every other folder may use: representations by name, checked operands, lists, directed rounding."""
