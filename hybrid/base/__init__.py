"""Base of all rooms: representations by name, checked operands, lists, directed rounding."""
