"""Long arrays in files: what a check has to hold beyond memory lies on a disk."""
