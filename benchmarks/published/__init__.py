"""Values printed in papers or published with benchmark sets."""
