"""Drawings in one style, and their files: figures by matplotlib, graphs by Graphviz."""
