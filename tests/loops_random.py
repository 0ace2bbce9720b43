#!/usr/bin/env python3
"""Random loops like those of simulations: 3 to 9 carried values of several shapes around one batch dimension, 1 to 40 ops per iteration.

- Random numbers from keys that are split in every iteration, bits of numbers, selects with cheap and expensive operands.
- Concatenations, slices, transposes, small reductions and contractions, running sums.
- Elements read and written by index, slices read and stacked by the counter.
- Inner loops and branches, known and unknown trip counts, common to all points or different for each.

Each loop runs on a backend and must have the interpreter's values. The fraction of loops that become one
kernel is then reported and compared with a bar (not with --values, which is for long runs).

    tests/loops_random.py RANDOM_PROGRAMS TOKAMAK [SEEDS [FIRST [BACKEND...]]] [--values]
"""
import random
import subprocess
import sys
import tempfile
from pathlib import Path

UNARY = ["negate", "abs", "tanh", "cosine", "sine", "floor", "logistic"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]
WORDS = ["add", "subtract", "multiply", "xor", "and", "or"]
CALLED = """sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
plus {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
set {
  x = f32[] parameter(0)
  ROOT y = f32[] parameter(1)
}
most {
  x = f32[] parameter(0)
  i = s32[] parameter(1)
  y = f32[] parameter(2)
  j = s32[] parameter(3)
  more = pred[] compare(x, y), direction=GT
  same = pred[] compare(x, y), direction=EQ
  first = pred[] compare(i, j), direction=LT
  both = pred[] and(same, first)
  left = pred[] or(more, both)
  z = f32[] select(left, x, y)
  k = s32[] select(left, i, j)
  ROOT r = (f32[], s32[]) tuple(z, k)
}
"""
BAR = 0.9  # fraction of the loops that must be one kernel


class Block:
    """A computation under construction: values by type and shape."""

    def __init__(self, r, name):
        self.r, self.name, self.lines, self.values, self.count = r, name, [], {}, 0

    def put(self, shape, text, known=True):
        name = f"v{self.count}"
        self.count += 1
        self.lines.append(f"  {name} = {shape} {text}")
        if known:
            self.values.setdefault(shape, []).append(name)
        return name

    def pick(self, shape):
        return self.r.choice(self.values[shape])

    def has(self, shape):
        return bool(self.values.get(shape))

    def text(self, root_shape, root, tuple_of=None):
        last = f"  ROOT root = {root_shape} tuple({', '.join(tuple_of)})" if tuple_of else f"  ROOT root = {root_shape} copy({root})"
        return f"{self.name} {{\n" + "\n".join(self.lines + [last]) + "\n}\n"


class Loop:
    def __init__(self, seed):
        r = self.r = random.Random(seed)
        self.n = r.choice([3, 5, 16, 33, 40, 70])
        self.k = r.choice([2, 3, 4])
        self.rounds = r.choice([1, 2, 5, 9])
        self.by_point = r.random() < 0.1  # each point has its own trip count, as after vmap
        self.known = r.random() < 0.75 and not self.by_point
        self.others = []  # computations
        n, k = self.n, self.k
        self.vector, self.words = f"f32[{n}]", f"s32[{n}]"
        self.rows, self.columns = f"f32[{k},{n}]", f"f32[{n},{k}]"
        self.hidden = r.choice([12, 24, 40])
        self.weights = f"f32[{k},{self.hidden}]"
        shapes = [self.vector, self.words, self.rows, self.columns, "f32[]", f"u32[{n}]", f"pred[{n}]", f"f64[{n}]", f"bf16[{n}]"]
        weights = [6, 3, 3, 3, 1, 2, 1, 1, 1]
        self.carries = ["s32[]", self.vector] + r.choices(shapes, weights, k=r.randint(1, 6))
        if self.by_point:
            shapes = [self.vector, self.words, self.rows, self.columns]
            self.carries = [self.words, self.vector] + r.choices(shapes, k=r.randint(1, 6))
            self.key, self.invariant, self.stacks = None, [], []
            return
        self.key = len(self.carries) if r.random() < 0.6 else None
        if self.key is not None:
            self.carries.append("u32[2]")
        self.invariant, self.stacks = [], []
        for _ in range(r.randrange(3)):
            self.invariant.append(len(self.carries))
            self.carries.append(r.choice([f"f32[{self.rounds},{n}]", f"f32[{self.rounds},{k},{n}]", f"f32[{n},{self.rounds}]", self.rows, f"f32[{k}]", self.weights]))
        for _ in range(r.randrange(3)):
            self.stacks.append(len(self.carries))
            self.carries.append(r.choice([f"f32[{self.rounds},{n}]", f"f32[{self.rounds},{n},{k}]", f"f32[{n},{self.rounds}]", f"f32[{self.rounds}]"]))

    def draw(self, b):
        """One random word per point, drawn with the key; and the key of the next iteration."""
        n, words = self.n, []
        key = [b.put("u32[]", f"reshape({b.put('u32[1]', f'slice({self.now[self.key]}), slice={{[{i}:{i + 1}]}}', False)})", False) for i in (0, 1)]

        def hashed(count, key):
            shape = f"u32[{count}]"
            broadcast = [b.put(shape, f"broadcast({w}), dimensions={{}}", False) for w in key]
            zero = b.put(shape, f"broadcast({b.put('u32[]', 'constant(0)', False)}), dimensions={{}}", False)
            pair = b.put(f"u64[{count}]", f"threefry2x32({broadcast[0]}, {broadcast[1]}, {zero}, {b.put(shape, 'iota(), iota_dimension=0', False)})", False)
            far = b.put(f"u64[{count}]", f"broadcast({b.put('u64[]', 'constant(32)', False)}), dimensions={{}}", False)
            high = b.put(shape, f"convert({b.put(f'u64[{count}]', f'shift-right-logical({pair}, {far})', False)})", False)
            return high, b.put(shape, f"convert({pair})", False)

        high, low = hashed(2, key)
        self.next_key = low
        of = [b.put("u32[]", f"reshape({b.put('u32[1]', f'slice({w}), slice={{[0:1]}}', False)})", False) for w in (high, low)]
        words = hashed(n, of)
        for w in words:
            b.values.setdefault(f"u32[{n}]", []).append(w)
        nine = b.put(f"u32[{n}]", f"broadcast({b.put('u32[]', 'constant(9)', False)}), dimensions={{}}", False)
        b.put(self.vector, f"convert({b.put(f'u32[{n}]', f'shift-right-logical({words[0]}, {nine})', False)})", False)
        unit = b.put(self.vector, f"broadcast({b.put('f32[]', 'constant(1.1920929e-07)', False)}), dimensions={{}}", False)
        b.put(self.vector, f"multiply(v{b.count - 3}, {unit})")

    def slice_in(self, b, i):
        """The slice of a loop-invariant array that iteration `counter` reads."""
        n, k, t, shape, name = self.n, self.k, self.rounds, self.carries[i], self.now[i]
        zero = b.put("s32[]", "constant(0)", False)
        if shape == f"f32[{t},{n}]":
            b.put(self.vector, f"reshape({b.put(f'f32[1,{n}]', f'dynamic-slice({name}, {self.now[0]}, {zero}), dynamic_slice_sizes={{1,{n}}}', False)})")
        elif shape == f"f32[{t},{k},{n}]":
            b.put(self.rows, f"reshape({b.put(f'f32[1,{k},{n}]', f'dynamic-slice({name}, {self.now[0]}, {zero}, {zero}), dynamic_slice_sizes={{1,{k},{n}}}', False)})")
        elif shape == f"f32[{n},{t}]":
            b.put(self.vector, f"reshape({b.put(f'f32[{n},1]', f'dynamic-slice({name}, {zero}, {self.now[0]}), dynamic_slice_sizes={{{n},1}}', False)})")
        elif shape == f"f32[{k}]":
            b.put(self.columns, f"broadcast({name}), dimensions={{1}}")
        elif shape == self.weights:
            self.network(b, name)

    def network(self, b, weights):
        """Two layers: one forward, one back."""
        n, k, m = self.n, self.k, self.hidden
        if self.r.random() < 0.5:
            x = b.put(self.rows, f"broadcast({b.pick(self.vector)}), dimensions={{1}}")
            h = b.put(f"f32[{m},{n}]", f"dot({weights}, {x}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}", False)
            h = b.put(f"f32[{m},{n}]", f"tanh({h})", False)
            b.put(self.rows, f"dot({weights}, {h}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
            return
        x = b.put(self.columns, f"broadcast({b.pick(self.vector)}), dimensions={{0}}")
        h = b.put(f"f32[{n},{m}]", f"dot({x}, {weights}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", False)
        h = b.put(f"f32[{n},{m}]", f"tanh({h})", False)
        b.put(self.columns, f"dot({h}, {weights}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}")

    def inner(self, b):
        """An inner loop of three iterations, or a branch."""
        r, shape = self.r, self.vector
        x, y = b.pick(shape), b.pick(shape)
        number = len(self.others)
        if r.random() < 0.5:
            of = f"(s32[], {shape}, {shape})"
            params = f"  i = s32[] parameter(0)\n  x = {shape} parameter(1)\n  y = {shape} parameter(2)\n"
            self.others.append(f"ic{number} {{\n{params}  m = s32[] constant(3)\n  ROOT c = pred[] compare(i, m), direction=LT\n}}\n")
            op = r.choice(BINARY)
            self.others.append(f"ib{number} {{\n{params}  one = s32[] constant(1)\n  j = s32[] add(i, one)\n  z = {shape} {op}(x, y)\n"
                               f"  w = {shape} tanh(z)\n  ROOT t = {of} tuple(j, w, x)\n}}\n")
            start = b.put("s32[]", "constant(0)", False)
            loop = b.put(of, f"while({start}, {x}, {y}), condition=ic{number}, body=ib{number}", False)
            b.put(shape, f"get-tuple-element({loop}), index={r.choice([1, 2])}")
            return
        names = []
        for which in (0, 1):
            names.append(f"br{number}_{which}")
            self.others.append(f"{names[-1]} {{\n  x = {shape} parameter(0)\n  ROOT z = {shape} {r.choice(UNARY)}(x)\n}}\n")
        two = b.put("s32[]", "constant(2)", False)
        of = two if self.by_point else self.now[0]
        holds = b.put("pred[]", f"compare({of}, {two}), direction=LT", False)
        b.put(shape, f"conditional({holds}, {x}, {y}), true_computation={names[0]}, false_computation={names[1]}")

    def costly(self, b):
        """Selects whose expensive operand only some points need: it becomes a branch."""
        r, n = self.r, self.n
        holds = b.put(f"pred[{n}]", f"compare({b.pick(self.words)}, {b.pick(self.words)}), direction={r.choice(['LT', 'NE'])}")
        for _ in range(r.choice([1, 3])):
            x = b.pick(self.vector)
            for _ in range(r.choice([4, 12, 24])):
                x = b.put(self.vector, f"{r.choice(['sine', 'cosine', 'tanh'])}({x})", False)
            arms = [x, b.pick(self.vector)]
            r.shuffle(arms)
            b.put(self.vector, f"select({holds}, {arms[0]}, {arms[1]})")

    def number(self, b, shape, below):
        """Numbers from 0 to below, occasionally one beyond."""
        words = b.pick(self.words) if b.has(self.words) else b.put(self.words, "iota(), iota_dimension=0")
        most = b.put("s32[]", f"constant({below + (self.r.random() < 0.3)})", False)
        of = words if shape == self.words else self.now[0] if not self.by_point else b.put("s32[]", f"constant({self.r.randrange(below)})", False)
        whole = b.put(shape, f"remainder({of}, {b.put(shape, f'broadcast({most}), dimensions={{}}', False) if shape != 's32[]' else most})", False)
        return b.put(shape, f"abs({whole})", False)

    def scattered(self, b):
        """A column that all points set, or a separate element for each; also in NumPy's form."""
        r, n, k = self.r, self.n, self.k
        to, old, new = r.choice(["set", "plus"]), self.any(b, self.columns), b.pick(self.vector)
        if r.random() < 0.4:
            at = b.put("s32[1]", f"reshape({self.number(b, 's32[]', k)})", False)
            b.put(self.columns, f"scatter({old}, {at}, {new}), update_window_dims={{0}}, inserted_window_dims={{1}}, scatter_dims_to_operand_dims={{1}}, "
                  f"index_vector_dim=0, to_apply={to}")  # fmt: skip
            return
        at = b.put(f"s32[{n},1]", f"reshape({self.number(b, self.words, k)})", False)
        if r.random() < 0.5:
            b.put(self.columns, f"scatter({old}, {at}, {new}), update_window_dims={{}}, inserted_window_dims={{1}}, input_batching_dims={{0}}, "
                  f"scatter_indices_batching_dims={{0}}, scatter_dims_to_operand_dims={{1}}, index_vector_dim=1, to_apply={to}")  # fmt: skip
            return
        count = b.put(f"s32[{n},1]", "iota(), iota_dimension=0", False)
        both = b.put(f"s32[{n},2]", f"concatenate({count}, {at}), dimensions={{1}}", False)
        b.put(self.columns, f"scatter({old}, {both}, {new}), update_window_dims={{}}, inserted_window_dims={{0,1}}, scatter_dims_to_operand_dims={{0,1}}, "
              f"index_vector_dim=1, to_apply={to}")  # fmt: skip

    def gathered(self, b):
        r, n, k = self.r, self.n, self.k
        at, of = b.put(f"s32[{n},1]", f"reshape({self.number(b, self.words, k)})", False), self.any(b, self.columns)
        if r.random() < 0.5:
            b.put(self.vector, f"gather({of}, {at}), offset_dims={{}}, collapsed_slice_dims={{1}}, operand_batching_dims={{0}}, start_indices_batching_dims={{0}}, "
                  f"start_index_map={{1}}, index_vector_dim=1, slice_sizes={{1,1}}")  # fmt: skip
            return
        count = b.put(f"s32[{n},1]", "iota(), iota_dimension=0", False)
        both = b.put(f"s32[{n},2]", f"concatenate({count}, {at}), dimensions={{1}}", False)
        b.put(self.vector, f"gather({of}, {both}), offset_dims={{}}, collapsed_slice_dims={{0,1}}, start_index_map={{0,1}}, index_vector_dim=1, slice_sizes={{1,1}}")

    def bits(self, b):
        """The bits of a number, and a number from bits."""
        n = self.n
        words = b.put(f"u32[{n}]", f"bitcast-convert({b.pick(self.vector)})")
        few, one = (b.put(f"u32[{n}]", f"broadcast({b.put('u32[]', f'constant({c})', False)}), dimensions={{}}", False) for c in (0x7FFFFF, 0x3F800000))
        part = b.put(f"u32[{n}]", f"and({words}, {few})", False)
        b.put(self.vector, f"bitcast-convert({b.put(f'u32[{n}]', f'or({one}, {part})', False)})")

    def folded(self, b):
        """Running sums, the maximum of each row and its index, products of rows, reversed rows."""
        r, n, k = self.r, self.n, self.k
        x, zero = self.any(b, self.columns), b.put("f32[]", "constant(0)", False)
        kind = r.randrange(4)
        if kind == 0:
            b.put(self.columns, f"reduce-window({x}, {zero}), window={{size=1x{k} pad=0_0x{k - 1}_0}}, to_apply=sum")
        elif kind == 1:
            place = b.put(f"s32[{n},{k}]", "iota(), iota_dimension=1", False)
            none, first = b.put("f32[]", "constant(-inf)", False), b.put("s32[]", "constant(0)", False)
            both = b.put(f"({self.vector}, {self.words})", f"reduce({x}, {place}, {none}, {first}), dimensions={{1}}, to_apply=most", False)
            b.put(self.vector, f"get-tuple-element({both}), index=0")
            b.put(self.words, f"get-tuple-element({both}), index=1")
        elif kind == 2:
            b.put(self.vector, f"dot({x}, {self.any(b, self.columns)}), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}")
        else:
            b.put(self.columns, f"reverse({x}), dimensions={{1}}")

    def any(self, b, shape):
        if b.has(shape):
            return b.pick(shape)
        return b.put(shape, f"broadcast({b.pick(self.vector)}), dimensions={{{0 if shape == self.columns else 1}}}")

    def step(self, b):
        r, n, k = self.r, self.n, self.k
        kind = r.randrange(21)
        floats = [s for s in (self.vector, self.rows, self.columns, "f32[]") if b.has(s)]
        shape = r.choice(floats)
        if kind < 3:
            b.put(shape, f"{r.choice(UNARY)}({b.pick(shape)})")
        elif kind < 7:
            b.put(shape, f"{r.choice(BINARY)}({b.pick(shape)}, {b.pick(shape)})")
        elif kind == 7:
            whole = self.words if r.random() < 0.5 or not b.has(f"u32[{n}]") else f"u32[{n}]"
            if b.has(whole):
                b.put(whole, f"{r.choice(WORDS)}({b.pick(whole)}, {b.pick(whole)})")
        elif kind == 8 and b.has(self.words):
            holds = b.put(f"pred[{n}]", f"compare({b.pick(self.words)}, {b.pick(self.words)}), direction={r.choice(['LT', 'EQ', 'GE'])}")
            b.put(self.vector, f"select({holds}, {b.pick(self.vector)}, {b.pick(self.vector)})")
        elif kind == 9 and b.has(self.rows):
            i = r.randrange(k)
            b.put(self.vector, f"reshape({b.put(f'f32[1,{n}]', f'slice({b.pick(self.rows)}), slice={{[{i}:{i + 1}], [0:{n}]}}', False)})")
        elif kind == 10:
            parts = [b.put(f"f32[1,{n}]", f"reshape({b.pick(self.vector)})", False) for _ in range(k)]
            b.put(self.rows, f"concatenate({', '.join(parts)}), dimensions={{0}}")
        elif kind == 11:
            source = [s for s in (self.rows, self.columns) if b.has(s)]
            if source:
                s = r.choice(source)
                b.put(self.columns if s == self.rows else self.rows, f"transpose({b.pick(s)}), dimensions={{1,0}}")
        elif kind == 12:
            source = [s for s in (self.rows, self.columns) if b.has(s)]
            if source:
                s = r.choice(source)
                zero = b.put("f32[]", "constant(0)", False)
                b.put(self.vector, f"reduce({b.pick(s)}, {zero}), dimensions={{{0 if s == self.rows else 1}}}, to_apply=sum")
            else:
                b.put(self.vector, f"broadcast({b.put('f32[]', f'constant({r.choice([0.5, -1, 2.25])})', False)}), dimensions={{}}")
        elif kind == 13:
            b.put(self.rows, f"broadcast({b.pick(self.vector)}), dimensions={{1}}")
        elif kind == 14:
            self.inner(b)
        elif kind == 15 and b.has(self.words):
            self.costly(b)
        elif kind == 16:
            self.scattered(b)
        elif kind == 17:
            self.gathered(b)
        elif kind == 18:
            self.bits(b)
        elif kind == 19:
            self.folded(b)
        else:
            clamp = [b.put("f32[]", f"constant({c})", False) for c in (-4, 4)]
            b.put(self.vector, f"clamp({clamp[0]}, {b.pick(self.vector)}, {clamp[1]})")

    def made(self, b, shape):
        """A value of the shape for the next iteration, from existing ones."""
        n = self.n
        if b.has(shape) and self.r.random() < 0.9:
            value = b.values[shape][-1] if self.r.random() < 0.7 else b.pick(shape)
            if shape.startswith("f32"):  # keeps values bounded
                return b.put(shape, f"tanh({value})", False)
            return value
        x = b.pick(self.vector)
        if shape == self.rows:
            return b.put(shape, f"broadcast({x}), dimensions={{1}}")
        if shape == self.columns:
            return b.put(shape, f"broadcast({x}), dimensions={{0}}")
        if shape == f"pred[{n}]":
            y = b.pick(self.words) if b.has(self.words) else b.put(self.words, "iota(), iota_dimension=0")
            return b.put(shape, f"compare({y}, {y}), direction=EQ")
        if shape == "f32[]":
            return b.put(shape, "constant(0.25)")
        return b.put(shape, f"convert({x})")

    def stacked(self, b, i):
        n, k, t, shape = self.n, self.k, self.rounds, self.carries[i]
        zero = b.put("s32[]", "constant(0)", False)
        c = self.now[0]
        if shape == f"f32[{t},{n}]":
            row, starts = b.put(f"f32[1,{n}]", f"reshape({b.pick(self.vector)})", False), f"{c}, {zero}"
        elif shape == f"f32[{t},{n},{k}]":
            row = b.put(f"f32[1,{n},{k}]", f"reshape({self.made(b, self.columns)})", False)
            starts = f"{c}, {zero}, {zero}"
        elif shape == f"f32[{n},{t}]":
            row, starts = b.put(f"f32[{n},1]", f"reshape({b.pick(self.vector)})", False), f"{zero}, {c}"
        else:
            row, starts = b.put("f32[1]", f"reshape({b.pick('f32[]') if b.has('f32[]') else b.put('f32[]', f'convert({c})')})", False), c
        return b.put(shape, f"dynamic-update-slice({self.now[i]}, {row}, {starts})", False)

    def program_by_point(self, b):
        r, n = self.r, self.n
        flags, state = f"pred[{n}]", f"({', '.join(self.carries)})"

        def more(c, count):
            zero = c.put("s32[]", "constant(0)", False)
            zeros = c.put(self.words, f"broadcast({zero}), dimensions={{}}", False)
            return c.put(flags, f"compare({count}, {zeros}), direction=GT", False)

        one = b.put(self.words, f"broadcast({b.put('s32[]', 'constant(1)', False)}), dimensions={{}}", False)
        next_ = [b.put(self.words, f"subtract({self.now[0]}, {one})", False)]
        for _ in range(r.choice([1, 3, 8, 15, 25, 40])):
            self.step(b)
        next_ += [self.made(b, shape) for shape in self.carries[1:]]
        holds = more(b, self.now[0])
        for i, shape in enumerate(self.carries):
            along = {self.rows: 1, self.columns: 0}.get(shape)
            own = holds if along is None else b.put(shape.replace("f32", "pred"), f"broadcast({holds}), dimensions={{{along}}}", False)
            next_[i] = b.put(shape, f"select({own}, {next_[i]}, {self.now[i]})", False)
        c = Block(r, "condition")
        params = [c.put(shape, f"parameter({i})", False) for i, shape in enumerate(self.carries)]
        never = c.put("pred[]", "constant(false)", False)
        c.put("pred[]", f"reduce({more(c, params[0])}, {never}), dimensions={{0}}, to_apply=any", False)
        e = Block(r, "ENTRY main")
        given = [e.put(shape, f"parameter({i})", False) for i, shape in enumerate(self.carries)]
        seven = e.put(self.words, f"broadcast({e.put('s32[]', 'constant(7)', False)}), dimensions={{}}", False)
        given[0] = e.put(self.words, f"and({given[0]}, {seven})", False)
        loop = e.put(state, f"while({', '.join(given)}), condition=condition, body=body", False)
        results = [e.put(shape, f"get-tuple-element({loop}), index={i}", False) for i, shape in enumerate(self.carries)]
        any_ = "any {\n  x = pred[] parameter(0)\n  y = pred[] parameter(1)\n  ROOT z = pred[] or(x, y)\n}\n"
        condition = "\n".join(c.lines[:-1] + ["  ROOT" + c.lines[-1][1:]])
        return ("HloModule loops\n\n" + any_ + CALLED + "".join(self.others) + f"condition {{\n{condition}\n}}\n" +
                b.text(state, "", next_) + e.text(state, "", results))

    def program(self):
        r, state = self.r, f"({', '.join(self.carries)})"
        b = Block(r, "body")
        self.now = []
        for i, shape in enumerate(self.carries):
            kept = i in self.invariant or i in self.stacks or i in (0, self.key)
            self.now.append(b.put(shape, f"parameter({i})", not kept or shape == self.rows))
        if self.by_point:
            return self.program_by_point(b)
        one = b.put("s32[]", "constant(1)", False)
        next_ = [b.put("s32[]", f"add({self.now[0]}, {one})", False)]
        if self.key is not None:
            self.draw(b)
        for i in self.invariant:
            self.slice_in(b, i)
        for _ in range(r.choice([1, 3, 8, 15, 25, 40])):
            self.step(b)
        for i, shape in enumerate(self.carries[1:], 1):
            if i == self.key:
                next_.append(self.next_key)
            elif i in self.invariant:
                next_.append(self.now[i])
            elif i in self.stacks:
                next_.append(self.stacked(b, i))
            else:
                next_.append(self.made(b, shape))
        limit = len(self.carries)
        all_ = self.carries + ([] if self.known else ["s32[]"])
        state = f"({', '.join(all_)})"
        c = Block(r, "condition")
        params = [c.put(shape, f"parameter({i})", False) for i, shape in enumerate(all_)]
        end = c.put("s32[]", f"constant({self.rounds})", False) if self.known else params[limit]
        c.put("pred[]", f"compare({params[0]}, {end}), direction=LT", False)
        if not self.known:
            next_.append(b.put("s32[]", f"parameter({limit})", False))
        e = Block(r, "ENTRY main")
        given = [e.put("s32[]", "constant(0)", False)]
        count = 0
        for shape in self.carries[1:]:
            given.append(e.put(shape, f"parameter({count})", False))
            count += 1
        if not self.known:
            seven = e.put("s32[]", "constant(7)", False)
            given.append(e.put("s32[]", f"and({e.put('s32[]', f'parameter({count})', False)}, {seven})", False))
        loop = e.put(state, f"while({', '.join(given)}), condition=condition, body=body", False)
        results = [(shape, e.put(shape, f"get-tuple-element({loop}), index={i}", False)) for i, shape in enumerate(all_)
                   if i not in self.invariant and r.random() < 0.9 or i == 1]
        ends = e.text(f"({', '.join(s for s, _ in results)})", "", [v for _, v in results])
        return ("HloModule loops\n\n" + CALLED + "".join(self.others) + c.text("pred[]", f"v{c.count - 1}") +
                b.text(state, "", next_) + ends)


def main():
    words = [word for word in sys.argv[1:] if word != "--values"]
    random_programs, tokamak = words[:2]
    seeds = int(words[2]) if len(words) > 2 else 120
    first = int(words[3]) if len(words) > 3 else 0
    backends = words[4:] or ["cpu", "sim-gpu"]
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for seed in range(first, first + seeds):
            paths.append(Path(folder) / f"{seed}.hlo")
            backend = backends[seed % len(backends)]
            paths[-1].write_text(f"// random_programs: through on:{backend}, inputs {seed}\n{Loop(seed).program()}")
        done = subprocess.run([random_programs, *map(str, paths)], capture_output=True, text=True, check=False)
        print(done.stdout[-4000:] + done.stderr[-4000:], end="")
        if done.returncode != 0 or "--values" in sys.argv:
            return done.returncode
        one = {"cpu": [0, 0, {}], "cuda": [0, 0, {}]}
        for path in paths:
            for target, counts in one.items():
                said = subprocess.run([tokamak, "kernels", str(path), "--target", target, "--no-text", "--decisions"],
                                      capture_output=True, text=True, check=False)
                if said.returncode != 0:
                    print(f"{path.stem}: {said.stderr.strip()}")
                    return 1
                records = [line for line in (said.stdout + said.stderr).splitlines() if "loop.fuse" in line]
                counts[0] += any(line.startswith("accepted") for line in records)
                counts[1] += bool(records)
                for line in records:
                    if line.startswith("rejected"):
                        why = line.split("loop.fuse", 1)[1].strip()
                        counts[2].setdefault(why, []).append(path.stem)
        for target, (accepted, all_, why) in one.items():
            print(f"{target}: {accepted} of {all_} loops are one kernel")
            for reason, who in sorted(why.items(), key=lambda item: -len(item[1])):
                print(f"  {len(who)}: {reason} ({', '.join(who[:5])})")
            if accepted < BAR * all_:
                print(f"{target}: fewer than {BAR:.0%}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
