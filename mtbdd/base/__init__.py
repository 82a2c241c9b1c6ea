"""What every other folder uses: errors, limits, memory, processes, compiled functions."""
