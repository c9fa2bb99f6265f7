"""Whether rows follow a noisy-or network."""
