"""The command line of the lint in Python: python -m tokamak lint script.py, which `tokamak lint script.py` calls."""

import argparse
import pathlib
import sys

from tokamak import _lint_script
from tokamak._lint_result import Lints, limits

# Exit codes of the command line (docs/cli.md).
_FINE, _FOUND, _BAD_INPUT = 0, 1, 2

_EPILOG = """\
The script runs to its end in a process of its own, with Tokamak on the CPU unless JAX_PLATFORMS and TOKAMAK_DEVICE say
otherwise; its output is shown. Microseconds are those of the run: of a call, predicted for the target, times the calls that
were counted. A comment `# tokamak: ignore[rule]` on a line, or alone above it, suppresses a finding.

Exit code: 0; 1 if warnings reach what --strict or --fail-on name; 2 if the script cannot be run or fails.

Examples:
  tokamak lint train.py --steps 100           what its programs cost that they need not
  tokamak lint --json train.py > lint.json    for programs; --sarif for code scanning
  tokamak lint --fix train.py                 also a patch, verified by running it
  tokamak lint --fix=lint.patch train.py      the patch into a file
  tokamak lint --apply train.py               changes the files
"""


def _parser():
    parser = argparse.ArgumentParser(prog="tokamak lint", formatter_class=argparse.RawDescriptionHelpFormatter, epilog=_EPILOG,
                                     description="Runs a Python script and names the lines that cost more time than necessary.")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument("--sarif", action="store_true", help="print a SARIF 2.1.0 log")
    parser.add_argument("--target", choices=("host", "h200"), default="host", help="what costs are predicted for (default: host)")
    parser.add_argument("--rules", action="append", default=[], metavar="RULES", help="look for these rules only, separated by commas")
    parser.add_argument("--ignore", action="append", default=[], metavar="RULES", help="do not look for these rules")
    parser.add_argument("--fail-on", metavar="COST", type=_cost,
                        help="exit with 1 if the warnings reach this cost: microseconds per run (20us) or a part of it (10%%)")  # fmt: skip
    parser.add_argument("--strict", action="store_true", help="exit with 1 if there is any warning")
    parser.add_argument("--no-suppressions", action="store_true", help="do not honour `# tokamak: ignore[RULE]` comments")
    parser.add_argument("--fix", nargs="?", const="-", metavar="FILE",
                        help="write a verified patch for the source, to standard output or with --fix=FILE to a file")  # fmt: skip
    parser.add_argument("--apply", action="store_true", help="change the files as the patch says")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="end the script after this time (default: never)")
    parser.add_argument("script", help="a Python file")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="arguments of the script")
    return parser


def _cost(text):
    if (found := limits(text)) is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected microseconds or a part of the run, such as 20us or 10%")
    return found


def _fails(lints, options):
    warnings = lints.warnings
    us = sum(lint.us for lint in warnings)
    limit, share = options.fail_on or (None, None)
    if not warnings:
        return False
    return options.strict or (limit is not None and us >= limit) or (share is not None and us >= share * lints.call_us)


def _split(words):
    """--fix takes a value only as --fix=FILE: the next word is the script."""
    return ["--fix=-" if word == "--fix" else word for word in words]


def _words_of_lint(words):
    """The words up to the script are ours, and so are options right behind it that the script cannot have: none."""
    own = next((i for i, word in enumerate(words) if word.endswith(".py") and not word.startswith("-")), len(words))
    return _split(words[:own]) + words[own:]


def _names(lists):
    return [name for one in lists for name in one.split(",") if name.strip()]


def _unknown_rule(names):
    """The compiler's message for a name that is no rule, or None."""
    from tokamak._explain import ExplainError, Explanation

    program = b"HloModule m\nENTRY main {\n  ROOT x = f32[] parameter(0)\n}\n"
    for name in names:
        try:
            Explanation(program, "m", {"target": "host", "lint_rules": name})._ask(json="true", lints="true")
        except ExplainError as error:
            return str(error).splitlines()[0].partition("lint_rules: ")[2] or str(error)
    return None


def _selected(lints, options):
    if options.no_suppressions:
        lints = Lints([*lints, *lints.suppressed], lints.call_us, lints.target, lints.unit, is_final=True, **lints.more)
    if options.rules:
        lints = lints.rule(*_names(options.rules))
    return lints.without(*_names(options.ignore)) if options.ignore else lints


def _print(lints, options):
    print(lints.sarif() if options.sarif else lints.json() if options.json else lints)


def lint(words):
    options = _parser().parse_args(_words_of_lint(words))
    if not options.script.endswith(".py"):
        print("error: expected a Python script; `tokamak lint FILE` reads programs (.mlir, .hlo)", file=sys.stderr)
        return _BAD_INPUT
    if why := _unknown_rule(_names(options.rules) + _names(options.ignore)):
        print(f"error: {why}", file=sys.stderr)
        return _BAD_INPUT
    quiet = options.json or options.sarif or options.fix == "-"
    try:
        result = _lint_script.run(options.script, options.args, options.target, quiet, options.timeout)
    except _lint_script.ScriptError as error:
        print(f"error: {error}", file=sys.stderr)
        return _BAD_INPUT
    lints = _selected(_lint_script.lints_of(result), options)
    patch = None
    if options.fix or options.apply:
        from tokamak import _lint_fix

        patch = _lint_fix.fix(lints, options.script, options.args, options.target, options.timeout)
    sys.stdout.flush()
    if patch is not None and options.fix and options.fix != "-":
        pathlib.Path(options.fix).write_text(patch.diff, encoding="utf-8")
    if patch is not None and options.fix == "-" and not (options.json or options.sarif):
        print(patch.diff, end="")
        sys.stdout.flush()
        print(patch.summary(), file=sys.stderr)
    else:
        _print(lints, options)
        if patch is not None:
            print(patch.summary(), file=sys.stderr)
    if patch is not None and options.apply:
        patch.apply()
    for what, why in result["missing"].items():
        print(f"warning: {what}: this JAX differs from what the lint was written for ({why})", file=sys.stderr)
    if result["exit_code"]:
        print(f"error: the script ended with exit code {result['exit_code']}", file=sys.stderr)
        return _BAD_INPUT
    return _FOUND if _fails(lints, options) else _FINE


def main(words):
    if words[:1] == ["lint"]:
        return lint(words[1:])
    print("usage: python -m tokamak lint [options] script.py [arguments]", file=sys.stderr)
    return _FINE if words[:1] in (["--help"], ["-h"]) else _BAD_INPUT
