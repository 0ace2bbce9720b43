"""tokamak.lint(f, *args): what a function costs that it need not."""

import json

from tokamak import _lint_traced
from tokamak._explain import Explanation, option_texts, traced
from tokamak._lint_result import Lint, Lints


def of_program(text, name, target="host", options=None, jaxpr=None):
    """The findings for one lowered program: (list of Lint, microseconds per call)."""
    explanation = Explanation(text.encode() if isinstance(text, str) else text, name, {"target": target, **(options or {})})
    said = json.loads(explanation._ask(json="true", lints="true"))
    found = [Lint.of_json(lint, program=name) for lint in said.get("lints", ())]
    own = []
    if jaxpr is not None:
        own = _lint_traced.of_jaxpr(jaxpr, lambda: json.loads(explanation._ask(json="true", compare="false")))
        for lint in own:
            lint.program = name
    return _lint_traced.merged(found, own, jaxpr), said.get("call_us", 0.0), said.get("suppressed", 0)


def lint(f, *args, tokamak_target="host", tokamak_options=None, **kwargs):
    """What `f(*args, **kwargs)` costs that it need not: a Lints, a list that prints as `tokamak lint` does. `f` is a function or
    the result of jax.jit, whose donated and static arguments are honoured; it is traced and lowered, not run.

    tokamak_target: "host" or "h200".
    tokamak_options: the options of jax.jit(f, compiler_options=...)."""
    program = traced(f, args, kwargs)
    text = program.lower().as_text(debug_info=True)
    name = getattr(f, "__name__", "f")
    found, call_us, suppressed = of_program(text, name, tokamak_target, option_texts(tokamak_options), program.jaxpr.jaxpr)
    return Lints(found, call_us, tokamak_target, more_suppressed=suppressed)
