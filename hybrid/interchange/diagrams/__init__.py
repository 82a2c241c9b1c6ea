"""Models from the diagrams of a caller's own manager."""
