"""Basis functions in a report: spectrum, directions that matter, and how far members of a mixture disagree."""
