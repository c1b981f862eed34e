"""A corrected data set, and the way back."""
