"""What a run found out about every label."""
