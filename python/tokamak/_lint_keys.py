"""lint.key-reuse: one random key that feeds two draws.

Values of a jaxpr are numbered: two variables that hold the same key have one number, also behind wrap, unwrap, slices with
equal indices and calls. A draw (random_bits) or a split consumes its key; fold_in does not, unless the same number is folded
in twice. The arms of a conditional are alternatives. A draw that a checkpoint repeats is no second use."""

from tokamak import _lint_jax

_SAME = {"random_wrap", "random_unwrap", "copy", "copy_p", "optimization_barrier", "sharding_constraint", "device_put"}
_CONSUMES = {"random_bits": "drawn from", "random_split": "split", "threefry2x32": "drawn from"}
_LOOPS = {"scan", "while"}


class _Numbers:
    """One number per value."""

    def __init__(self):
        self._of = {}

    def __call__(self, *what):
        return self._of.setdefault(what, len(self._of))


class _Use:
    __slots__ = ("how", "where")

    def __init__(self, how, where):
        self.how, self.where = how, where


def _may_hold_keys(atom):
    kind = str(getattr(getattr(atom, "aval", None), "dtype", ""))
    return kind.startswith("key<") or kind == "uint32"


class _Walk:
    def __init__(self):
        self.number = _Numbers()
        self.depth = 0  # of loops around the equation
        self.level = {}  # number -> depth of the innermost loop in whose iterations the value changes; missing: 0
        self.found = {}  # (first line, second line) -> (first use, second use)
        self.at = None  # the user's line that called the library function around the equation

    def derived(self, ins, *what):
        """The number of a value that is computed from those of `ins`."""
        number = self.number(*what, *ins)
        self.level[number] = max((self.level.get(i, 0) for i in ins), default=0)
        return number

    def read(self, env, atom):
        if _lint_jax.is_literal(atom):
            return self.number("literal", str(atom.val), str(getattr(atom, "aval", "")))
        if atom not in env:
            env[atom] = self.number("unknown", id(env), id(atom))
            self.level[env[atom]] = self.depth
        return env[atom]

    def where(self, eqn):
        return self.at or _lint_jax.where(eqn)

    def walk(self, jaxpr, env, used, again=False):
        for eqn in jaxpr.eqns:
            self.step(eqn, env, used, again)

    def step(self, eqn, env, used, again):
        name = eqn.primitive.name
        ins = [self.read(env, atom) for atom in eqn.invars]
        if name in _CONSUMES:
            key = self.derived(ins, "pair") if name == "threefry2x32" else ins[0]
            self.consume(key, _Use(_CONSUMES[name], self.where(eqn)), used, again)
        elif name == "random_fold_in":
            self.consume(self.derived(ins, "fold"), _Use("folded with the same number", self.where(eqn)), used, again)
        inner = list(_lint_jax.inner_jaxprs(eqn))
        if name == "cond":
            self.branches(inner, ins, used, again)
        elif name in _LOOPS:
            self.loop(eqn, inner, ins, used, again)
        elif inner:
            self.call(eqn, inner, ins, env, used, again or bool(eqn.params.get("differentiated")))
        elif name in _SAME:
            env.update(zip(eqn.outvars, ins))
        elif any(map(_may_hold_keys, eqn.outvars)):
            params = str(sorted((k, str(v)) for k, v in eqn.params.items()))
            for i, out in enumerate(eqn.outvars):
                env[out] = self.derived(ins, name, params, i)

    def consume(self, key, use, used, again):
        first = use if again else used.setdefault(key, use)
        if first is not use and use.where is not None:
            self.found.setdefault((str(first.where), str(use.where)), (first, use))

    def branches(self, inner, ins, used, again):
        after = dict(used)
        for one in inner:
            of_branch = dict(used)
            self.walk(one, dict(zip(one.invars, ins[1:])), of_branch, again)
            after.update(of_branch)
        used.update(after)

    def call(self, eqn, inner, ins, env, used, again):
        """An equation that calls jaxprs with its operands, in order."""
        for one in inner:
            inside = dict(zip(one.invars, ins[max(0, len(ins) - len(one.invars)) :]))
            outside = self.at
            if not _lint_jax.is_users(_lint_jax.source_of(one)[1]):  # traced once, for all of its callers
                self.at = self.where(eqn)
            self.walk(one, inside, used, again)
            self.at = outside
            if len(one.outvars) == len(eqn.outvars):
                for out, value in zip(eqn.outvars, one.outvars):
                    env[out] = self.read(inside, value)

    def loop(self, eqn, inner, ins, used, again):
        """The constants of a loop are the same in each iteration: what consumes one does so each time."""
        self.depth += 1
        for one in inner:
            fixed, moving = self.operands(eqn, one, ins)
            inside = dict(zip(one.invars, fixed))
            before = set(used)
            self.walk(one, inside, used, again)
            repeats = eqn.params.get("length", 2) != 1 and not again
            for key, use in list(used.items()) if repeats else ():
                if key not in before and self.level.get(key, 0) < self.depth and use.where is not None:
                    repeated = _Use(use.how + " in each iteration of a loop", use.where)
                    self.found.setdefault((str(use.where), str(use.where)), (use, repeated))
            for v, first in zip(one.invars[len(fixed) :], moving):  # what a carry or a row of keys starts as
                if inside.get(v) in used:
                    used.setdefault(first, used[inside[v]])
        self.depth -= 1

    @staticmethod
    def operands(eqn, one, ins):
        """The operands of a loop's jaxpr: those that are the same in each iteration, and those that the others start as."""
        if eqn.primitive.name == "scan":
            constants = eqn.params["num_consts"]
            return ins[:constants], ins[constants:]
        of_condition, of_body = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
        is_body = getattr(eqn.params["body_jaxpr"], "jaxpr", None) is one
        fixed = ins[of_condition : of_condition + of_body] if is_body else ins[:of_condition]
        return fixed, ins[of_condition + of_body :]


def reused(jaxpr):
    """[(first use, second use)] of keys that the jaxpr consumes twice; a use has `how` and `where`."""
    walk = _Walk()
    walk.walk(jaxpr, {}, {})
    return list(walk.found.values())


def consumed(jaxpr):
    """The positions of the arguments whose keys the jaxpr consumes."""
    walk, used = _Walk(), {}
    numbers = [walk.number("argument", i) for i in range(len(jaxpr.invars))]
    walk.walk(jaxpr, dict(zip(jaxpr.invars, numbers)), used)
    return {i for i, number in enumerate(numbers) if number in used}
