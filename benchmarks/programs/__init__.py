"""Programs that measure; each writes one record, and each has --help."""
