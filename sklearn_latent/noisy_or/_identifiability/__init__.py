"""Which edges can be learned, in which order and from what."""
