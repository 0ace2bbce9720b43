"""Findings as SARIF 2.1.0 (Static Analysis Results Interchange Format)."""

import pathlib

from tokamak import _library
from tokamak._lint_result import position

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def _uri(path):
    try:
        return pathlib.Path(path).resolve().relative_to(pathlib.Path.cwd()).as_posix()
    except ValueError:
        return pathlib.Path(path).as_uri() if pathlib.Path(path).is_absolute() else pathlib.PurePath(path).as_posix()


def _location(at):
    path, line = at
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(path)}, "region": {"startLine": line}}}


def _fixes(lint):
    changes = (lint.fix or {}).get("replacements", [])
    if not changes:
        return []
    files = {}
    for change in changes:
        region = {"startLine": change["line"], "startColumn": 1, "endLine": change["end_line"], "endColumn": 1}
        files.setdefault(change["file"], []).append({"deletedRegion": region, "insertedContent": {"text": change["text"]}})
    return [{"description": {"text": lint.fix["text"]},
             "artifactChanges": [{"artifactLocation": {"uri": _uri(path)}, "replacements": all_of_file}
                                 for path, all_of_file in files.items()]}]  # fmt: skip


def _result(lint, is_suppressed):
    result = {"ruleId": lint.rule, "level": lint.severity, "message": {"text": lint.text},
              "locations": [_location(at) for at in map(position, lint.lines) if at], "properties": {"us": lint.us, "saved_us": lint.saved_us}}  # fmt: skip
    if fixes := _fixes(lint):
        result["fixes"] = fixes
    if is_suppressed:
        result["suppressions"] = [{"kind": "inSource"}]
    return result


def log_of(lints):
    """The log, as a dict."""
    everything = [(lint, False) for lint in lints] + [(lint, True) for lint in lints.suppressed]
    rules = [{"id": rule} for rule in sorted({lint.rule for lint, _ in everything})]
    version = _library.text("tok_version") or "0"
    driver = {"name": "tokamak", "version": version, "rules": rules}
    return {"$schema": _SCHEMA, "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "results": [_result(*item) for item in everything]}]}  # fmt: skip
