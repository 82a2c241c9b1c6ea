"""How drawings look and how they are written: matplotlib's figures and Graphviz's, one style for all."""
