"""Checkpoints of long checks: files in a folder from which another run resumes."""
