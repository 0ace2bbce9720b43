"""Runs a script for `tokamak lint script.py`: python -m tokamak._lint_child CONFIG.json. Records what it compiles and calls, and
writes the findings, and values to compare for fixes, as JSON when it ends, also if it fails."""

import contextlib
import json
import os
import sys
import traceback
import types


def _use_patches(patches):
    """Makes imports of patched files read the patched text. The files stay as they are."""
    import importlib.machinery

    of_python = importlib.machinery.SourceFileLoader.get_code

    def get_code(self, fullname):
        path = os.path.realpath(self.get_filename(fullname))
        if path in patches:
            return compile(patches[path], path, "exec", dont_inherit=True)
        return of_python(self, fullname)

    importlib.machinery.SourceFileLoader.get_code = get_code


def _run(script, args, patches):
    """Runs the script as python does. Returns its globals and exit code."""
    path = os.path.abspath(script)
    text = patches.get(os.path.realpath(script))
    if text is None:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    sys.argv[:] = [script, *args]
    sys.path[0] = os.path.dirname(os.path.realpath(script))
    main = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = path, __builtins__
    sys.modules["__main__"] = main
    try:
        exec(compile(text, path, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as stop:
        code = stop.code
        if code is not None and not isinstance(code, int):
            print(code, file=sys.stderr)
        return main.__dict__, code if isinstance(code, int) else int(code is not None)
    except BaseException as error:  # also KeyboardInterrupt: what was recorded so far is reported
        frames = traceback.extract_tb(error.__traceback__)
        while frames and frames[0].filename == __file__:
            frames.pop(0)
        print("Traceback (most recent call last):\n" + "".join(traceback.format_list(frames)), end="", file=sys.stderr)
        print("".join(traceback.format_exception_only(error)), end="", file=sys.stderr)
        return main.__dict__, 1
    return main.__dict__, 0


def execute(config):
    """Runs config["script"] in this process. Returns what is written as JSON: exit code, findings, seconds of compiling."""
    import jax

    from tokamak import _lint_record, _lint_run, _lint_source, _lint_values

    patches = config.get("patches") or {}
    _lint_source.overlay = dict(patches)
    watch = _lint_values.Watch(config.get("watch") or [])
    recorder = _lint_record.Recorder()
    # The script's output goes where the user sees it, or into a file to be compared.
    with contextlib.ExitStack() as during:
        if config.get("stdout"):
            during.enter_context(contextlib.redirect_stdout(during.enter_context(open(config["stdout"], "w", encoding="utf-8"))))
        elif config.get("quiet"):
            during.enter_context(contextlib.redirect_stdout(sys.stderr))
        with recorder, watch:
            variables, code = _run(config["script"], config["args"], patches)
            with contextlib.suppress(Exception):
                jax.effects_barrier()
        sys.stdout.flush()
    result = {"exit_code": code, "missing": _missing()}
    if config.get("values"):
        _lint_values.save(config["values"], variables, watch)
    lints = _lint_run.findings(recorder, config["target"], config.get("options"))
    result |= {"lints": lints.data(), "suppressed": [lint.data() for lint in lints.suppressed]}
    result["compile_seconds"] = sum(program.compile_seconds for program in recorder.programs)
    return result


def main(config_path):
    with open(config_path, encoding="utf-8") as file:
        config = json.load(file)
    os.environ["TOKAMAK_LINT"] = "0"  # this process reports at its end
    _use_patches(config.get("patches") or {})
    result = execute(config)
    with open(config["result"] + ".new", "w", encoding="utf-8") as file:
        json.dump(result, file)
    os.replace(config["result"] + ".new", config["result"])


def _missing():
    from tokamak import _lint_jax

    return dict(_lint_jax.missing)


if __name__ == "__main__":
    main(sys.argv[1])
