"""Symbolic matrices: BDD and MTBDD encodings of transition relations, built on `dd`."""
