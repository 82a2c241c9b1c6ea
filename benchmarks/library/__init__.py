"""What programs share, and parts of single programs."""
