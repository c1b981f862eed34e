"""Which labels are wrong: arrays in, a table out."""
