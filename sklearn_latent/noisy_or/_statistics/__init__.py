"""Statistics of binary rows.

Bits, moments of planned sets and of sets on demand, distinct rows.
"""
