"""Runs the Python programs of pages in one process, because importing JAX takes longer than all of them.

    run_python.py < [{"page": P, "code": C}, ...] > [{"error": E, "output": [line, ...]}, ...]

The blocks of one page share their names, as if typed into one session."""
import json
import os
import sys
import tempfile
import traceback


def captured(code, names):
    """(traceback or None, what was printed by this process, the library included)."""
    saved, error = (os.dup(1), os.dup(2)), None
    with tempfile.TemporaryFile(mode="w+") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
        try:
            exec(compile(code, "example.py", "exec"), names)
        except Exception:
            error = traceback.format_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for stream, old in zip((1, 2), saved):
                os.dup2(old, stream)
                os.close(old)
        file.seek(0)
        return error, file.read().splitlines()


def main():
    sys.stdout.reconfigure(line_buffering=True)  # in order with the errors, as on a terminal
    sessions, results = {}, []
    for block in json.load(sys.stdin):
        error, output = captured(block["code"], sessions.setdefault(block["page"], {"__name__": "__main__"}))
        results.append({"error": error, "output": output})
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
