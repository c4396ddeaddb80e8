"""Hyperparameters: declared as fields of modules, with constraints and priors, and seen as one vector."""

from errorband.parameters.checks import check_number, check_whole
from errorband.parameters.constraints import POSITIVE, REAL, GreaterThan, Interval, Ordered, Real
from errorband.parameters.module import (
    Entry,
    Module,
    Parameter,
    all_fixed,
    as_flags,
    as_value,
    broadcasts,
    entries,
    fill,
    format_value,
    hyperparameter,
    plain,
    replace_values,
    value_of,
)
from errorband.parameters.vector import check, log_prior, pack, units, unpack, vector_names

__all__ = [
    "POSITIVE",
    "REAL",
    "Entry",
    "GreaterThan",
    "Interval",
    "Module",
    "Ordered",
    "Parameter",
    "Real",
    "all_fixed",
    "as_flags",
    "as_value",
    "broadcasts",
    "check",
    "check_number",
    "check_whole",
    "entries",
    "fill",
    "format_value",
    "hyperparameter",
    "log_prior",
    "pack",
    "plain",
    "replace_values",
    "units",
    "unpack",
    "value_of",
    "vector_names",
]
