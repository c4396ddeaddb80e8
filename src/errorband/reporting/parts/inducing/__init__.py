"""Inducing inputs in a report, the same for every kind of model: where they are, how many, and why so many."""
