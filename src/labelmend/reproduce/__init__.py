"""The paper's tables, figures and claims, as runs that are made once and kept."""
