"""Decision diagrams: managers of `dd`, encodings, relations, MTBDDs and their arithmetic."""
