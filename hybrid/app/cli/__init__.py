"""The command line: `hybrid check | levels | info | plot-matrix | graph | verify`, a module each."""
