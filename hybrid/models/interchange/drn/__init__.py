"""Storm's explicit text, in its own dialect and in PRISM's."""
