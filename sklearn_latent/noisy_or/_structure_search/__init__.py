"""Structures: quartets and what follows from them, then search by likelihood.

References
----------
Jernite, Y., Halpern, Y. and Sontag, D. (2013). Discovering hidden variables in noisy-or
networks using quartet tests. NIPS.
"""
