"""Programs that measure, the records they wrote, and the pages rendered from these; see README.md."""
