"""Common ground of all folders: errors, limits, memory, processes, compiled functions."""
