"""PRISM's explicit files: several with one table each, or one with all."""
