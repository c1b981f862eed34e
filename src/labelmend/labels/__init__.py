"""What a run found out about every label, and how to act on it."""

from .apply import Plan, plan
from .restore import undo
from .table import LabelTable, cleanlab_columns, read_labels

__all__ = ["LabelTable", "Plan", "cleanlab_columns", "plan", "read_labels", "undo"]
