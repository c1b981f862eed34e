"""From what a user has to samples: folders, tables, archives, named sets and Python objects."""
