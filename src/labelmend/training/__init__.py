"""Training: the loop, checkpoints and the run directory."""
