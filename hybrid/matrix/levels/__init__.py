"""Injection levels: the level curve, and the choice of a level by prediction, weighing or timing."""
