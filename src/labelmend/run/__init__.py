"""The run directory: each file format with its writer beside its reader."""
