"""Where users meet the library: the command line and Python."""
