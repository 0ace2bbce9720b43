"""python -m tokamak lint script.py"""

import sys

from tokamak import _lint_cli

sys.exit(_lint_cli.main(sys.argv[1:]))
