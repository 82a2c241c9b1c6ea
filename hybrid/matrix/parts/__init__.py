"""Parts of a compressed matrix for several devices: what each holds and receives, and their choice."""
