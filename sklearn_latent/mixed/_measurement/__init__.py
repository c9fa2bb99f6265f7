"""Which features measure the same latent, and how many states it has."""
