"""Parameters of a known structure, from moments.

References
----------
Halpern, Y. and Sontag, D. (2013). Unsupervised learning of noisy-or Bayesian networks.
UAI.
"""
