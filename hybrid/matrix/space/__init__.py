"""Vector spaces of iterations, operators between bounds and the recurrences that run over them."""
