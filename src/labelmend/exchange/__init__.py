"""Exchange with annotation tools: suspects go out with suggestions, and answers come back as decisions.

Each format has its writer beside its reader: `label_studio`, `fiftyone`, `cvat` and `sheet` (CSV).
"""
