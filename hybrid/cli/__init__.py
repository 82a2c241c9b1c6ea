"""The command line: `hybrid check | levels | info`."""
