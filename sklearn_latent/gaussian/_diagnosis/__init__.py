"""Whether rows follow a Gaussian network."""
