"""Quiet PETSc, before Firedrake is first imported."""

import os

# It would take the options of the test runner for options of its own and warn about them.
os.environ.setdefault("FIREDRAKE_DISABLE_OPTIONS_LEFT", "1")
