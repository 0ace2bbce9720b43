"""Importing this re-executes the script with the Python of .venv (made by scripts/bootstrap) if the running Python has no JAX, so that a
benchmark is one command in a plain clone. Does nothing if the running Python has JAX."""
import importlib.util
import os
import sys
from pathlib import Path

OWN = Path(__file__).resolve().parent.parent / ".venv"

if importlib.util.find_spec("jax") is None:
    if not (OWN / "bin/python").exists() or Path(sys.prefix).resolve() == OWN.resolve():
        sys.exit("there is no JAX for this Python: scripts/bootstrap makes a .venv that has it")
    os.execv(OWN / "bin/python", [str(OWN / "bin/python"), *sys.orig_argv[1:]])
