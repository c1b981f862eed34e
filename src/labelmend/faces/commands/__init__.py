"""The commands, one module for each task of the user."""
