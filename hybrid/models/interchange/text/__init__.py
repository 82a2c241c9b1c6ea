"""Texts of models: packed or not, in blocks, words and rows of numbers, with the places of lines."""
