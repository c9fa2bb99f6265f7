"""Scores of families and of moves, with the ideal parent."""
