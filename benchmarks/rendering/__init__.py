"""Pages and tables made from the records."""
