"""`tokamak lint script.py`: runs a script in a process of its own and reports what its programs cost."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from tokamak._lint_result import Lint, Lints


class ScriptError(RuntimeError):
    """The script could not be run, or its process ended without a report."""


def environment():
    """The environment of the script's process: Tokamak on the CPU, unless the user chose otherwise."""
    env = dict(os.environ)
    if "tokamak" not in env.get("JAX_PLATFORMS", ""):
        env["JAX_PLATFORMS"] = "tokamak,cpu"
    env.setdefault("TOKAMAK_DEVICE", "cpu")
    root = str(pathlib.Path(__file__).resolve().parents[1])
    if not {"site-packages", "dist-packages"} & set(pathlib.Path(root).parts):  # a clone: JAX finds the plugin by the path
        env["PYTHONPATH"] = os.pathsep.join([root, *filter(None, [env.get("PYTHONPATH")])])
    return env


def run(script, args=(), target="host", quiet=False, timeout=None, patches=None, values=None, watch=(), stdout=None):
    """Runs the script and returns what _lint_child.py writes, as a dict. With `stdout`, a file for what it prints, it compiles
    without the disk cache, so that compile times can be compared."""
    if not os.path.isfile(script):
        raise ScriptError(f"cannot read '{script}'")
    with tempfile.TemporaryDirectory(prefix="tokamak-lint-") as folder:
        config = {"script": script, "args": list(args), "target": target, "quiet": quiet, "patches": patches or {}, "stdout": stdout,
                  "values": values, "watch": [list(w) for w in watch], "result": os.path.join(folder, "result.json")}  # fmt: skip
        path = os.path.join(folder, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        command = [sys.executable, "-m", "tokamak._lint_child", path]
        hidden = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True} if stdout else {}
        try:
            env = environment() | ({"TOKAMAK_CACHE": "off"} if stdout else {})
            done = subprocess.run(command, env=env, timeout=timeout, check=False, **hidden)
        except subprocess.TimeoutExpired:
            raise ScriptError(f"{script} did not end in {timeout:.0f} s") from None
        if not os.path.isfile(config["result"]):
            said = (done.stderr or "").strip().splitlines()[-1:] if stdout else []
            how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
            raise ScriptError(f"{script} ended with {how} before it could be reported" + (f": {said[0]}" if said else ""))
        with open(config["result"], encoding="utf-8") as file:
            result = json.load(file)
        result["stderr"] = done.stderr if stdout else ""
        return result


def lints_of(result):
    """The Lints of a result of `run`."""
    data = result["lints"]
    more = {k: v for k, v in data.items() if k not in ("lints", "run_us", "target", "suppressed")}
    suppressed = [Lint.of_json(lint) for lint in result["suppressed"]]
    for lint in data["lints"]:
        lint.pop("share", None)
    return Lints(map(Lint.of_json, data["lints"]), data["run_us"], data["target"], "run", suppressed,
                 data["suppressed"] - len(suppressed), **more)  # fmt: skip
