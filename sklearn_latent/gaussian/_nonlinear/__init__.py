"""Link and noise functions, and the fits of families that have them."""
