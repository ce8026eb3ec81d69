import os

# PETSc takes a program's own flags for its options and would warn that nothing used them.
os.environ.setdefault("FIREDRAKE_DISABLE_OPTIONS_LEFT", "1")
