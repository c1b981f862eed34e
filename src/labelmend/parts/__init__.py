"""What recipes are made of, one concept a file. Each part takes the `Step` first."""
