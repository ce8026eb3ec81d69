"""Evaluators of the field that a measure makes."""
