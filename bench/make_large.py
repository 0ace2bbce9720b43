#!/usr/bin/env python3
"""Writes a large HLO program of one kind to standard output, to check that compile time is linear.

    bench/make_large.py KIND COUNT      KIND: steps, chain, ladder, calls, parameters, concatenate, mixed,
                                        sums, nested, pieces, hub, updates
"""
import sys


def chain(n):
    yield "  v0 = f32[8] parameter(0)"
    for i in range(1, n):
        yield f"  {'ROOT ' if i == n - 1 else ''}v{i} = f32[8] {'negate' if i % 3 else 'tanh'}(v{i - 1})"


def ladder(n):
    """Every value is used twice: 2^n paths."""
    yield "  v0 = f32[8] parameter(0)"
    for i in range(1, n):
        yield f"  {'ROOT ' if i == n - 1 else ''}v{i} = f32[8] {'add' if i % 2 else 'multiply'}(v{i - 1}, v{i - 1})"


def parameters(n):
    for i in range(n):
        yield f"  p{i} = f32[4] parameter({i})"
    yield f"  ROOT t = ({', '.join(['f32[4]'] * n)}) tuple({', '.join(f'p{i}' for i in range(n))})"


def concatenate(n):
    yield "  x = f32[8] parameter(0)"
    for i in range(n):
        yield f"  s{i} = f32[1] slice(x), slice={{[{i % 8}:{i % 8 + 1}]}}"
    yield f"  ROOT c = f32[{n}] concatenate({', '.join(f's{i}' for i in range(n))}), dimensions={{0}}"


def mixed(n):
    """Similar to JAX's output: constants broadcast everywhere, additions of zero, transposes that cancel, equal values."""
    yield "  v0 = f32[8,8] parameter(0)"
    last, i = "v0", 0
    while i < n:
        yield f"  c{i} = f32[] constant({i % 5})"
        yield f"  b{i} = f32[8,8] broadcast(c{i}), dimensions={{}}"
        yield f"  a{i} = f32[8,8] multiply({last}, b{i})"
        yield f"  d{i} = f32[8,8] multiply(b{i}, {last})"
        yield f"  e{i} = f32[8,8] subtract(a{i}, d{i})"
        yield f"  t{i} = f32[8,8] transpose(e{i}), dimensions={{1,0}}"
        yield f"  u{i} = f32[8,8] transpose(t{i}), dimensions={{1,0}}"
        yield f"  n{i} = f32[8,8] negate(u{i})"
        yield f"  m{i} = f32[8,8] negate(n{i})"
        yield f"  w{i} = f32[8,8] add(m{i}, {last})"
        last, i = f"w{i}", i + 10
    yield f"  ROOT r = f32[8,8] negate({last})"


def steps(n):
    """A Python loop unrolled by tracing: each step reads a row, passes on four values, and one of them is stacked."""
    yield "  rows = f32[%d,64] parameter(0)" % n
    for k in range(4):
        yield f"  x0.{k} = f32[64] parameter({k + 1})"
    for i in range(n):
        x, y = (lambda k: f"x{i}.{k}"), (lambda k: f"x{i + 1}.{k}")  # noqa: B023
        yield f"  s{i} = f32[1,64] slice(rows), slice={{[{i}:{i + 1}], [0:64]}}"
        yield f"  r{i} = f32[64] reshape(s{i})"
        yield f"  t{i} = f32[] constant({i * 0.02 + 0.013:.3f})"
        yield f"  w{i} = f32[64] broadcast(t{i}), dimensions={{}}"
        last = f"r{i}"
        for j in range(24):
            yield f"  c{i}.{j} = f32[64] {('cosine', 'sine', 'tanh', 'negate')[j % 4]}({last})"
            yield f"  d{i}.{j} = f32[64] {('add', 'multiply')[j % 2]}(c{i}.{j}, {x(j % 4) if j % 3 else f'w{i}'})"
            last = f"d{i}.{j}"
        for k in range(4):
            yield f"  {y(k)} = f32[64] subtract({x(k)}, {last})"
        yield f"  u{i} = f32[1,64] reshape({y(0)})"
    yield f"  all = f32[{n},64] concatenate({', '.join(f'u{i}' for i in range(n))}), dimensions={{0}}"
    yield f"  ROOT t = (f32[{n},64], f32[64], f32[64], f32[64]) tuple(all, {', '.join(f'x{n}.{k}' for k in (1, 2, 3))})"


def sums(n):
    """Constants that all combine into one."""
    yield "  v0 = s32[8] parameter(0)\n  c = s32[] constant(3)\n  b = s32[8] broadcast(c), dimensions={}"
    for i in range(1, n):
        yield f"  {'ROOT ' if i == n - 1 else ''}v{i} = s32[8] add(v{i - 1}, b)"


def nested(n):
    """A concatenate of a concatenate of a concatenate ..."""
    yield "  x = f32[1] parameter(0)\n  v1 = f32[2] concatenate(x, x), dimensions={0}"
    for i in range(2, n):
        yield f"  {'ROOT ' if i == n - 1 else ''}v{i} = f32[{i + 1}] concatenate(v{i - 1}, x), dimensions={{0}}"


def pieces(n):
    """One concatenate, and a slice for each of its operands."""
    for i in range(n):
        yield f"  p{i} = f32[2] parameter({i})"
    yield f"  c = f32[{2 * n}] concatenate({', '.join(f'p{i}' for i in range(n))}), dimensions={{0}}"
    for i in range(n):
        yield f"  s{i} = f32[2] slice(c), slice={{[{2 * i}:{2 * i + 2}]}}"
    yield f"  ROOT t = ({', '.join(['f32[2]'] * n)}) tuple({', '.join(f's{i}' for i in range(n))})"


def hub(n):
    """One value that all others simplify to."""
    yield "  x = f32[8] parameter(0)\n  c = f32[] constant(1)\n  b = f32[8] broadcast(c), dimensions={}"
    for i in range(n):
        yield f"  v{i} = f32[8] multiply(x, b)\n  w{i} = f32[8] tanh(v{i})"
    yield f"  ROOT t = ({', '.join(['f32[8]'] * n)}) tuple({', '.join(f'w{i}' for i in range(n))})"


def updates(n):
    """Each update overwrites the previous one."""
    yield "  v0 = f32[64] parameter(0)\n  u = f32[8] parameter(1)\n  i = s32[] parameter(2)"
    for i in range(1, n):
        yield f"  {'ROOT ' if i == n - 1 else ''}v{i} = f32[64] dynamic-update-slice(v{i - 1}, u, i)"


KINDS = {"steps": steps, "chain": chain, "ladder": ladder, "parameters": parameters, "concatenate": concatenate,
         "mixed": mixed, "sums": sums, "nested": nested, "pieces": pieces, "hub": hub, "updates": updates}  # fmt: skip


def main():
    kind, count = sys.argv[1], int(sys.argv[2])
    if kind == "calls":  # each calls the previous one twice: 2^count instructions when inlined
        text = "HloModule m\n\nf0 {\n  a = f32[8] parameter(0)\n  ROOT b = f32[8] tanh(a)\n}\n"
        for i in range(1, count):
            text += (f"\n{'ENTRY ' if i == count - 1 else ''}f{i} {{\n  a = f32[8] parameter(0)\n"
                     f"  b = f32[8] call(a), to_apply=f{i - 1}\n  ROOT c = f32[8] call(b), to_apply=f{i - 1}\n}}\n")  # fmt: skip
        print(text)
        return
    print("HloModule m\n\nENTRY main {")
    print("\n".join(KINDS[kind](count)))
    print("}")


if __name__ == "__main__":
    main()
