"""Importing this goes on with the Python of .venv (scripts/bootstrap makes it) where the Python that runs has no JAX: a benchmark is one
command in a plain clone. On a machine whose own Python has JAX nothing happens."""
import importlib.util
import os
import sys
from pathlib import Path

OWN = Path(__file__).resolve().parent.parent / ".venv"

if importlib.util.find_spec("jax") is None:
    if not (OWN / "bin/python").exists() or Path(sys.prefix).resolve() == OWN.resolve():
        sys.exit("there is no JAX for this Python: scripts/bootstrap makes a .venv that has it")
    os.execv(OWN / "bin/python", [str(OWN / "bin/python"), *sys.orig_argv[1:]])
