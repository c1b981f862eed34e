"""Kinds of data: how each is decoded, normalised, augmented and shown."""
