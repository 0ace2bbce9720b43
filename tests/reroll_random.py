#!/usr/bin/env python3
"""Random programs of equal steps, like an unrolled Python loop, through re-rolling: the bits are unchanged the same. Steps use earlier
results, read slices at various indices, use constants that grow or jump, are stacked along any dimension or used one by one,
and occasionally one differs from the others.

    tests/reroll_random.py RANDOM_PROGRAMS [SEEDS [FIRST]]
"""
import random
import subprocess
import sys
import tempfile
from pathlib import Path

UNARY = ["negate", "abs", "tanh", "cosine", "floor", "logistic"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]


class Program:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.lines, self.parameters, self.names = [], [], 0

    def put(self, text, shape="f32[4]"):
        name = f"v{self.names}"
        self.names += 1
        self.lines.append(f"  {name} = {shape} {text}")
        return name

    def parameter(self, shape):
        name = f"p{len(self.parameters)}"
        self.parameters.append(f"  {name} = {shape} parameter({len(self.parameters)})")
        return name

    def numbers(self, count, most):
        """One number for each step, from 0 to most."""
        kind = self.r.randrange(4)
        if kind == 0 and most + 1 >= count:
            begin = self.r.randint(0, most + 1 - count)
            return [begin + i for i in range(count)]
        if kind == 1 and most + 1 >= count:
            return [most - i for i in range(count)]
        if kind == 2:
            return [i % (most + 1) for i in range(count)]
        return [self.r.randint(0, most) for _ in range(count)]

    def source(self, count):
        """A function from a step to a value that is defined before it."""
        r, kind = self.r, self.r.randrange(8)
        if kind == 0:
            value = self.parameter("f32[4]")
            return lambda i: value
        if kind == 1:
            x, at = self.parameter(f"f32[{count + 3},4]"), self.numbers(count, count + 2)
            return lambda i: self.put(f"reshape({self.put(f'slice({x}), slice={{[{at[i]}:{at[i] + 1}], [0:4]}}', 'f32[1,4]')})")
        if kind == 2:
            x, at = self.parameter("f32[4,9]"), self.numbers(count, 8)
            return lambda i: self.put(f"reshape({self.put(f'slice({x}), slice={{[0:4], [{at[i]}:{at[i] + 1}]}}', 'f32[4,1]')})")
        if kind == 3:
            x, at = self.parameter("f32[20]"), self.numbers(count, 12)
            return lambda i: self.put(f"slice({x}), slice={{[{at[i]}:{at[i] + 8}:2]}}")
        if kind == 4:
            x, at = self.parameter(f"f32[{count},4]"), self.numbers(count, count + 1)  # past the end: clamped

            def dynamic(i):
                start, zero = self.put(f"constant({at[i] - 1})", "s32[]"), self.put("constant(0)", "s32[]")
                row = self.put(f"dynamic-slice({x}, {start}, {zero}), dynamic_slice_sizes={{1,4}}", "f32[1,4]")
                return self.put(f"reshape({row})")

            return dynamic
        if kind == 5:
            table = [r.choice(["0", "-0", "inf", "0.1", str(i)]) for i in range(count)]
            return lambda i: self.put(f"broadcast({self.put(f'constant({table[i]})', 'f32[]')}), dimensions={{}}")
        if kind == 6:
            type_, begin, by = r.choice(["s8", "s32", "u8", "s64", "u32"]), r.randint(0, 40), r.randint(0, 9)

            def grows(i):
                number = self.put(f"constant({(begin + by * i) % 128})", f"{type_}[]")
                return self.put(f"broadcast({self.put(f'convert({number})', 'f32[]')}), dimensions={{}}")

            return grows
        table = [[r.randint(0, 3) for _ in range(4)] for _ in range(count)]
        return lambda i: self.put("constant({" + ", ".join(map(str, table[i])) + "})")

    def run(self):
        r = self.r
        count = r.choice([4, 5, 6, 9, 17])
        carried, back = r.randint(1, 3), r.choice([1, 1, 1, 2, 3])
        states = [[self.parameter("f32[4]") for _ in range(carried)] for _ in range(back)]
        sources = [self.source(count) for _ in range(r.randint(0, 3))]
        recipe = [(r.choice(UNARY + BINARY), r.random(), r.random()) for _ in range(r.randint(3, 7))]
        looks = [(r.randint(1, back), r.randrange(carried)) for _ in range(r.randint(1, 3))]
        nexts = [r.random() for _ in range(carried)]
        odd = r.randrange(count) if r.random() < 0.2 else -1
        inner = [[] for _ in recipe]
        stacked_inside = r.random() < 0.4
        rows = []
        for i in range(count):
            values = [states[-d][k] for d, k in looks] + [source(i) for source in sources]
            for n, (op, a, b) in enumerate(recipe):
                if i == odd and n == 0:
                    op = "sign"
                x, y = values[int(a * len(values))], values[int(b * len(values))]
                values.append(self.put(f"{op}({x})" if op in [*UNARY, "sign"] else f"{op}({x}, {y})"))
                inner[n].append(values[-1])
            made = values[-len(recipe) :]
            states.append([made[int(k * len(made))] for k in nexts])
            if stacked_inside:
                rows.append(self.put(f"reshape({states[-1][0]})", "f32[1,4]"))
        results = [(value, "f32[4]") for value in states[-1]]
        self.collect(results, count, states[back:], inner, rows)
        r.shuffle(results)
        shapes = ", ".join(shape for _, shape in results)
        root = f"  ROOT t = ({shapes}) tuple({', '.join(name for name, _ in results)})"
        return "\n".join(["HloModule m", "", "ENTRY main {", *self.parameters, *self.lines, root, "}"]) + "\n"

    def collect(self, results, count, states, inner, rows):
        r = self.r
        if rows:
            results.append((self.put(f"concatenate({', '.join(rows)}), dimensions={{0}}", f"f32[{count},4]"), f"f32[{count},4]"))
        if r.random() < 0.5:  # stacked, possibly with more before and after
            parts = [step[0] for step in states]
            if r.random() < 0.3:
                parts = [parts[r.randrange(count)], *parts, parts[-1]]
            if r.random() < 0.2:
                parts.reverse()
            d, kind = r.randrange(2), r.choice(["reshape", "broadcast"])
            shape = "f32[1,4]" if d == 0 else "f32[4,1]"
            how = "" if kind == "reshape" else f", dimensions={{{1 - d}}}"
            parts = [self.put(f"{kind}({part}){how}", shape) for part in parts]
            shape = f"f32[{len(parts)},4]" if d == 0 else f"f32[4,{len(parts)}]"
            results.append((self.put(f"concatenate({', '.join(parts)}), dimensions={{{d}}}", shape), shape))
        if r.random() < 0.4:  # concatenated
            parts = r.choice(inner)
            shape = f"f32[{4 * count}]"
            results.append((self.put(f"concatenate({', '.join(parts)}), dimensions={{0}}", shape), shape))
        for _ in range(r.choice([0, 0, 1, 3])):
            results.append((r.choice(r.choice(inner)), "f32[4]"))
        if r.random() < 0.2:  # all of them in reverse order, like a gradient
            total = self.put("negate(%s)" % states[-1][0])
            for value in reversed(r.choice(inner)):
                total = self.put(f"multiply({self.put(f'add({total}, {value})')}, {value})")
            results.append((total, "f32[4]"))


def main():
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for seed in range(first, first + seeds):
            through = ["reroll", "cse,reroll,simplify,dce,reroll,cse", "pipeline"][seed % 3]
            paths.append(Path(folder) / f"{seed}.hlo")
            paths[-1].write_text(f"// random_programs: through {through}, inputs {seed}\n{Program(seed).run()}")
        done = subprocess.run([sys.argv[1], *map(str, paths)], capture_output=True, text=True, check=False)
        print(done.stdout + done.stderr, end="")
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
