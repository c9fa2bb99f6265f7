"""Where latents go."""
