"""The report of a run; reads run directories only."""
