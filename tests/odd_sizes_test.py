#!/usr/bin/env python3
"""Compares kernels of arrays of odd sizes with the interpreter: 0, 1, 3, 17, 127, 1000 and 4097 in every dimension.

    tests/odd_sizes_test.py TOKAMAK [NAME...]

A program has one instruction of a kind for each size, so that it is compiled only once.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = (0, 1, 3, 17, 127, 1000, 4097)
# Shapes with each size in each dimension, and few elements, because the interpreter computes them too.
SHAPES = [(n,) for n in SIZES] + [(n, 3) for n in SIZES] + [(3, n) for n in SIZES] + [(17, n) for n in SIZES[:6]] + [(n, 17) for n in SIZES[:6]]
SHAPES += [(2, n, 5) for n in SIZES] + [(n, 3, 2) for n in SIZES[:6]] + [(5, 2, n) for n in SIZES[:6]]


def text(shape):
    return ",".join(map(str, shape))


class Program:
    def __init__(self):
        self.bodies, self.lines, self.results, self.count, self.parameters = {}, [], [], 0, 0

    def body(self, name, lines):
        self.bodies[name] = lines

    def put(self, shape, expression):
        self.count += 1
        self.lines.append(f"  v{self.count} = {shape} {expression}")
        return f"v{self.count}"

    def parameter(self, shape):
        self.parameters += 1
        return self.put(shape, f"parameter({self.parameters - 1})")

    def result(self, shape, name):
        self.results.append((shape, name))

    def write(self):
        bodies = "\n".join(f"{name} {{\n{lines}\n}}\n" for name, lines in self.bodies.items())
        root = f"  ROOT r = ({', '.join(s for s, _ in self.results)}) tuple({', '.join(n for _, n in self.results)})"
        return f"HloModule m\n\n{bodies}\nENTRY main {{\n" + "\n".join(self.lines) + f"\n{root}\n}}\n"


def binary(type_, op):
    return f"  a = {type_}[] parameter(0)\n  b = {type_}[] parameter(1)\n  ROOT c = {type_}[] {op}(a, b)"


def scans(type_, op, first, reverse):
    """Cumulative windows along each dimension."""
    program = Program()
    program.body("fold", binary(type_, op))
    for shape in SHAPES:
        x = program.parameter(f"{type_}[{text(shape)}]")
        for d, size in enumerate(shape):
            if size < 2:
                continue
            z = program.put(f"{type_}[]", f"constant({first})")
            sizes = "x".join(str(size if i == d else 1) for i in range(len(shape)))
            pad = "x".join(("0_0" if i != d else f"0_{size - 1}" if reverse else f"{size - 1}_0") for i in range(len(shape)))
            whole = f"{type_}[{text(shape)}]"
            y = program.put(whole, f"reduce-window({x}, {z}), window={{size={sizes} pad={pad}}}, to_apply=fold")
            program.result(whole, y)
    return program


def scan_ops():
    """The op with its carry, forward and reverse; its producers and consumers are computed in the same program."""
    program = Program()
    for i, shape in enumerate(SHAPES):
        for d in range(len(shape)):
            part = text(shape[:d] + shape[d + 1 :])
            program.body(f"step{i}_{d}", f"""  x = f32[{part}] parameter(0)
  y = f32[{part}] parameter(1)
  c = f32[{part}] parameter(2)
  m = f32[{part}] multiply(c, y)
  n = f32[{part}] add(m, x)
  ROOT r = (f32[{part}], f32[{part}], f32[{part}]) tuple(n, c, n)""")  # fmt: skip
            whole = f"f32[{text(shape)}]"
            if 0 in shape:
                continue
            x, c = program.parameter(whole), program.parameter(f"f32[{part}]")
            y = program.put(whole, f"abs({x})")
            reverse = "true" if (i + d) % 2 else "false"
            s = program.put(f"({whole}, {whole}, f32[{part}])",
                            f"scan({x}, {y}, {c}), dimensions={{{d}}}, num_carries=1, is_reverse={reverse}, to_apply=step{i}_{d}")  # fmt: skip
            parts = [program.put(whole, f"get-tuple-element({s}), index={k}") for k in (0, 1)]
            program.result(whole, program.put(whole, f"subtract({parts[0]}, {parts[1]})"))
            if i % 2:
                program.result(f"f32[{part}]", program.put(f"f32[{part}]", f"get-tuple-element({s}), index=2"))
    return program


def compare(type_, direction, number, extra=""):
    return f"  ROOT less = pred[] compare(p{2 * number}, p{2 * number + 1}), direction={direction}{extra}"


def sorts(types, less, shapes=None, index_operand=False):
    """Sorts along each dimension; the operands have these types, and many of their elements are equal. With index_operand, the last operand
    is an iota."""
    program = Program()
    parameters = "".join(f"  p{2 * i + k} = {t}[] parameter({2 * i + k})\n" for i, t in enumerate(types) for k in (0, 1))
    program.body("less", parameters + less)
    for shape in shapes or SHAPES:
        operands = []
        for type_ in types:
            whole = f"{type_}[{text(shape)}]"
            x = program.parameter(whole)
            if type_ == "f32":  # few distinct numbers, including zeros of both signs
                x = program.put(whole, f"round-nearest-even({program.put(whole, f'add({x}, {x})')})")
            operands.append(x)
        for d in range(len(shape)):
            shapes = [f"{t}[{text(shape)}]" for t in types]
            result = f"({', '.join(shapes)})" if len(types) > 1 else shapes[0]
            if index_operand:
                operands[-1] = program.put(shapes[-1], f"iota(), iota_dimension={d}")
            y = program.put(result, f"sort({', '.join(operands)}), dimensions={{{d}}}, is_stable=true, to_apply=less")
            for i, own in enumerate(shapes):
                program.result(own, program.put(own, f"get-tuple-element({y}), index={i}") if len(types) > 1 else y)
    return program


ALIKE = """  zero = f32[] constant(0)
  nan = f32[] constant(nan)
  z0 = pred[] compare(p0, zero), direction=EQ
  s0 = f32[] select(z0, zero, p0)
  n0 = pred[] compare(p0, p0), direction=NE
  a0 = f32[] select(n0, nan, s0)
  z1 = pred[] compare(p1, zero), direction=EQ
  s1 = f32[] select(z1, zero, p1)
  n1 = pred[] compare(p1, p1), direction=NE
  a1 = f32[] select(n1, nan, s1)
"""
NUMBERS = ALIKE + "  ROOT less = pred[] compare(a0, a1), direction=LT, type=TOTALORDER"
TWO_KEYS = ALIKE + """  equal = pred[] compare(a0, a1), direction=EQ, type=TOTALORDER
  second = pred[] compare(p2, p3), direction=GT
  both = pred[] and(equal, second)
  first = pred[] compare(a0, a1), direction=LT, type=TOTALORDER
  ROOT less = pred[] or(both, first)"""
COMPUTED = """  m0 = s32[] constant(3)
  k0 = s32[] remainder(p0, m0)
  k1 = s32[] remainder(p1, m0)
  ROOT less = pred[] compare(k0, k1), direction=GT"""


def tops(type_, k, largest, shapes=None):
    program = Program()
    for shape in shapes or SHAPES:
        if shape[-1] < k:
            continue
        whole, few = f"{type_}[{text(shape)}]", text(shape[:-1] + (k,))
        y = program.put(f"({type_}[{few}], s32[{few}])", f"topk({program.parameter(whole)}), k={k}, largest={largest}")
        program.result(f"{type_}[{few}]", program.put(f"{type_}[{few}]", f"get-tuple-element({y}), index=0"))
        program.result(f"s32[{few}]", program.put(f"s32[{few}]", f"get-tuple-element({y}), index=1"))
    return program


def random_bits(type_, algorithm, words):
    """From a state whose counter overflows."""
    program = Program()
    state = f"u64[{words}]"
    s = program.put(state, f"constant({{{', '.join(['81985529216486895', '18446744073709551613', '18446744073709551615'][:words])}}})")
    for shape in [*SHAPES, (4096,), (64, 32), (3, 128)]:
        whole = f"{type_}[{text(shape)}]"
        y = program.put(f"({state}, {whole})", f"rng-bit-generator({s}), algorithm={algorithm}")
        s = program.put(state, f"get-tuple-element({y}), index=0")
        program.result(whole, program.put(whole, f"get-tuple-element({y}), index=1"))
    program.result(state, s)
    return program


# Neighbours in a circle: not an order at all, so a different merge gives a different result.
CIRCLE = """  d = s32[] subtract(p1, p0)
  three = s32[] constant(3)
  turned = s32[] and(d, three)
  one = s32[] constant(1)
  ROOT less = pred[] compare(turned, one), direction=EQ"""
# -1 sorts last; the bits are not a whole number of bytes.
NARROW = "  ROOT less = pred[] compare(p2, p3), direction=LE"

# Rows, columns and contracted size of a product: each size in each position.
PRODUCTS = [(n, 17, 33) for n in SIZES] + [(17, n, 33) for n in SIZES] + [(33, 17, n) for n in SIZES] + [(127, 127, 127), (64, 300, 520)]


def dots(type_, result, lhs, rhs, batch=1):
    """Products with operand layouts `lhs` and `rhs`, such as "mk" and "kn"; each with a producer of an operand and a consumer."""
    program = Program()
    for i, (m, n, k) in enumerate(PRODUCTS):
        sizes = {"b": batch, "m": m, "n": n, "k": k}
        shapes = [f"{type_}[{text([sizes[c] for c in side])}]" for side in (lhs, rhs)]
        operands = [program.parameter(shape) for shape in shapes]
        which = i % 4
        if which in (1, 3):
            operands[which // 2] = program.put(shapes[which // 2], f"negate({operands[which // 2]})")
        dims = [sizes[c] for c in "bmn" if c in lhs + rhs]
        whole = f"{result}[{text(dims)}]"
        batches = f", lhs_batch_dims={{{lhs.index('b')}}}, rhs_batch_dims={{{rhs.index('b')}}}" if "b" in lhs else ""
        contracted = f"lhs_contracting_dims={{{lhs.index('k')}}}, rhs_contracting_dims={{{rhs.index('k')}}}"
        d = program.put(whole, f"dot({', '.join(operands)}), {contracted}{batches}")
        if which > 1:
            bias = program.put(whole, f"broadcast({program.parameter(f'{result}[{n}]')}), dimensions={{{len(dims) - 1}}}")
            d = program.put(whole, f"add({d}, {bias})")
        program.result(whole, d)
    return program


def vectors(type_):
    """A vector times matrices, and matrices times a vector, in place; with a consumer."""
    program = Program()
    for n, k in [(n, 33) for n in SIZES] + [(33, n) for n in SIZES] + [(7, 9), (8, 8), (64, 520), (1030, 300)]:
        x, whole = program.parameter(f"{type_}[{k}]"), f"{type_}[{n}]"
        for shape, d in ((f"{type_}[{k},{n}]", 0), (f"{type_}[{n},{k}]", 1)):
            matrix = program.parameter(shape)
            y = program.put(whole, f"dot({x}, {matrix}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{{d}}}")
            program.result(whole, program.put(whole, f"negate({y})"))
    return program


def columns(type_, op, first):
    """Column reductions of small arrays and of arrays larger than the caches; with much and little work per element."""
    program = Program()
    program.body("fold", binary(type_, op))
    for rows, width in [(n, 40) for n in SIZES] + [(17, n) for n in SIZES] + [(n, 4100) for n in (64, 67)] + [(517, 523), (1300, 260), (9000, 33)]:
        whole, row = f"{type_}[{rows},{width}]", f"{type_}[{width}]"
        x, z = program.parameter(whole), program.put(f"{type_}[]", f"constant({first})")
        weights_ = program.put(whole, f"broadcast({program.parameter(f'{type_}[{rows}]')}), dimensions={{0}}")
        scaled = program.put(whole, f"multiply({x}, {weights_})")
        computed = program.put(whole, f"tanh({scaled})") if type_ != "s32" else program.put(whole, f"xor({scaled}, {x})")
        for of in (x, scaled, computed):
            program.result(row, program.put(row, f"reduce({of}, {z}), dimensions={{0}}, to_apply=fold"))
        both = program.put(f"({row}, {row})", f"reduce({scaled}, {computed}, {z}, {z}), dimensions={{0}}, to_apply=two")
        program.result(row, program.put(row, f"get-tuple-element({both}), index=1"))
    program.body("two", f"""  a = {type_}[] parameter(0)
  b = {type_}[] parameter(1)
  c = {type_}[] parameter(2)
  d = {type_}[] parameter(3)
  e = {type_}[] {op}(a, c)
  f = {type_}[] {op}(b, d)
  ROOT r = ({type_}[], {type_}[]) tuple(e, f)""")  # fmt: skip
    return program


def weights(type_, lhs, rhs, values=0):
    """Rows of products that are reduced where they are computed: their maximum, and the normalized weights. With `values`, also the values
    weighted by them: attention."""
    program = Program()
    program.body("greatest", binary("f32", "maximum"))
    program.body("sum", binary("f32", "add"))
    for m, n, k in PRODUCTS:
        if 0 in (m, n, k):
            continue
        sizes = {"m": m, "n": n, "k": k}
        x, w = (program.parameter(f"{type_}[{text([sizes[c] for c in side])}]") for side in (lhs, rhs))
        whole, column = f"f32[{m},{n}]", f"f32[{m}]"
        d = program.put(f"{type_}[{m},{n}]", f"dot({x}, {w}), lhs_contracting_dims={{{lhs.index('k')}}}, rhs_contracting_dims={{{rhs.index('k')}}}")
        small = program.put(whole, f"multiply({program.put(whole, f'convert({d})')}, {program.put(whole, 'broadcast(' + program.put('f32[]', 'constant(0.01)') + '), dimensions={}')})")
        most = program.put(column, f"reduce({small}, {program.put('f32[]', 'constant(-inf)')}), dimensions={{1}}, to_apply=greatest")
        below = program.put(whole, f"subtract({small}, {program.put(whole, f'broadcast({most}), dimensions={{0}}')})")
        e = program.put(whole, f"exponential({below})")
        total = program.put(column, f"reduce({e}, {program.put('f32[]', 'constant(0)')}), dimensions={{1}}, to_apply=sum")
        share = program.put(whole, f"divide({e}, {program.put(whole, f'broadcast({total}), dimensions={{0}}')})")
        if values:
            share = program.put(f"{type_}[{m},{n}]", f"convert({share})")
            v, given = program.parameter(f"{type_}[{n},{values}]"), f"{type_}[{m},{values}]"
            program.result(given, program.put(given, f"dot({share}, {v}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"))
            continue
        program.result(whole, share)
        program.result(column, most)
    return program


def convolutions(type_, window, groups=1):
    """Convolutions of images of odd sizes."""
    program = Program()
    for height, width, features in [(n, 5, 3) for n in SIZES[1:6]] + [(5, n, 3) for n in SIZES[1:6]] + [(9, 9, n) for n in (1, 3, 17, 127)]:
        inputs, outputs = groups * features, groups * 8
        x = program.parameter(f"{type_}[2,{height},{width},{inputs}]")
        w = program.parameter(f"{type_}[3,3,{features},{outputs}]")
        size = lambda n: (n + window["pad"] * 2 - (2 * window["dilate"] + 1)) // window["stride"] + 1
        if size(height) < 1 or size(width) < 1:
            continue
        whole = f"{type_}[2,{size(height)},{size(width)},{outputs}]"
        both = lambda key, mark="{0}x{0}": mark.format(window[key])
        attributes = f"window={{size=3x3 stride={both('stride')} pad={both('pad', '{0}_{0}x{0}_{0}')} rhs_dilate={both('dilate')}}}"
        y = program.put(whole, f"convolution({x}, {w}), {attributes}, dim_labels=b01f_01io->b01f, feature_group_count={groups}")
        program.result(whole, program.put(whole, f"negate({y})"))
    return program


def windows(type_, op, first):
    """Windows along each dimension: few taps, then many, over both ends."""
    program = Program()
    program.body("fold", binary(type_, op))
    for i, shape in enumerate(SHAPES):
        x = program.parameter(f"{type_}[{text(shape)}]")
        for d, size in enumerate(shape):
            for taps, stride in ((3, 2), (70, 1)):
                if size * taps > 100000:
                    continue
                low, high = (taps // 2, taps) if (i + d) % 2 else (taps - 1, 0)
                count = (size + low + high - taps) // stride + 1
                one = lambda value, other: "x".join(str(value if k == d else other) for k in range(len(shape)))
                whole = f"{type_}[{text(shape[:d] + (count,) + shape[d + 1:])}]"
                z = program.put(f"{type_}[]", f"constant({first})")
                window = f"size={one(taps, 1)} stride={one(stride, 1)} pad={one(f'{low}_{high}', '0_0')}"
                program.result(whole, program.put(whole, f"reduce-window({x}, {z}), window={{{window}}}, to_apply=fold"))
    return program


def picks():
    """select-and-scatter of adjacent windows, and of overlapping ones."""
    program = Program()
    program.body("ge", "  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=GE")
    program.body("fold", binary("f32", "add"))
    for shape in SHAPES:
        whole = f"f32[{text(shape)}]"
        x = program.parameter(whole)
        for d, size in enumerate(shape):
            for taps, stride in ((2, 2), (3, 1), (30, 7)):
                count = (size + taps - 2) // stride + 1
                one = lambda value, other: "x".join(str(value if k == d else other) for k in range(len(shape)))
                s = program.parameter(f"f32[{text(shape[:d] + (count,) + shape[d + 1:])}]")
                z = program.put("f32[]", "constant(0)")
                window = f"size={one(taps, 1)} stride={one(stride, 1)} pad={one(f'{taps - 1}_{taps - 1}', '0_0')}"
                if 0 in shape:
                    continue
                program.result(whole, program.put(whole, f"select-and-scatter({x}, {s}, {z}), window={{{window}}}, select=ge, scatter=fold"))  # fmt: skip
    return program


def scatters(type_, op, attributes=""):
    """Single elements, rows and batches of them; some indices are out of bounds."""
    program = Program()
    program.body("fold", binary(type_, op) if op else f"  a = {type_}[] parameter(0)\n  ROOT b = {type_}[] parameter(1)")

    def indices(shape, size):
        whole = f"s32[{text(shape)}]"
        broadcast = lambda value: program.put(whole, f"broadcast({program.put('s32[]', f'constant({value})')}), dimensions={{}}")
        walk = program.put(whole, f"iota(), iota_dimension={shape.index(max(shape))}")
        number = program.put(whole, f"add({program.put(whole, f'multiply({walk}, {broadcast(40503)})')}, {program.parameter(whole)})")
        return program.put(whole, f"remainder({number}, {broadcast(size + 1)})")

    def result(array, index_operand, updates, dims):
        whole, u = f"{type_}[{text(array)}]", f"{type_}[{text(updates)}]"
        x, y = program.put(whole, f"abs({program.parameter(whole)})"), program.put(u, f"abs({program.parameter(u)})")
        program.result(whole, program.put(whole, f"scatter({x}, {index_operand}, {y}), {dims}, {attributes}to_apply=fold"))

    for count, size in ((1, 1), (3, 17), (127, 3), (4097, 1000), (32768, 1), (40003, 17), (65539, 1000), (65539, 4097), (70001, 127), (131075, 70001)):  # fmt: skip
        one = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
        result((size,), indices((count, 1), size), (count,), one)
    for count, rows, columns in ((1000, 3, 17), (40003, 17, 3), (65539, 300, 127)):
        both = "update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=0"
        result((rows, columns), indices((2, count), min(rows, columns)), (count,), both)
    for count, rows, columns in ((1000, 3, 17), (20011, 17, 3), (9001, 127, 16)):
        row = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
        result((rows, columns), indices((count, 1), rows), (count, columns), row)
    for batches, count, size in ((3, 17, 3), (3, 20011, 17), (127, 300, 3), (128, 1000, 17)):
        batch = "update_window_dims={}, inserted_window_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=2"  # fmt: skip
        result((batches, size), indices((count, batches, 1), size), (count, batches), batch)
    return program


def transforms(complex_, real):
    program = Program()
    for shape in SHAPES:
        if 0 in shape:
            continue
        half = shape[:-1] + (shape[-1] // 2 + 1,)
        for kind, of, from_, to, into in (("FFT", complex_, shape, complex_, shape), ("IFFT", complex_, shape, complex_, shape),
                                          ("RFFT", real, shape, complex_, half), ("IRFFT", complex_, half, real, shape)):  # fmt: skip
            x = program.parameter(f"{of}[{text(from_)}]")
            whole = f"{to}[{text(into)}]"
            program.result(whole, program.put(whole, f"fft({x}), fft_type={kind}, fft_length={{{shape[-1]}}}"))
    return program


def solves(type_):
    """Matrices with a large diagonal."""
    program = Program()
    for n, columns in ((1, 1), (3, 17), (17, 1), (33, 127), (127, 3), (3, 1000)):
        matrix = f"{type_}[2,{n},{n}]"
        x, row, column = program.parameter(matrix), program.put(f"s32[2,{n},{n}]", "iota(), iota_dimension=1"), program.put(f"s32[2,{n},{n}]", "iota(), iota_dimension=2")  # fmt: skip
        diagonal = program.put(f"pred[2,{n},{n}]", f"compare({row}, {column}), direction=EQ")
        large = program.put(matrix, f"broadcast({program.put(f'{type_}[]', f'constant({2 * n})')}), dimensions={{}}")
        a = program.put(matrix, f"select({diagonal}, {large}, {x})")
        for lower in ("true", "false"):
            program.result(matrix, program.put(matrix, f"cholesky({a}), lower={lower}"))
            for left, shape in (("true", f"{type_}[2,{n},{columns}]"), ("false", f"{type_}[2,{columns},{n}]")):
                b = program.parameter(shape)
                attributes = f"left_side={left}, lower={lower}, transpose_a={'TRANSPOSE' if left == lower else 'NO_TRANSPOSE'}"
                program.result(shape, program.put(shape, f"triangular-solve({a}, {b}), {attributes}"))
    return program


PROGRAMS = {
    "max of windows": lambda: windows("f32", "maximum", "-inf"),
    "sums of windows": lambda: windows("s32", "add", "0"),
    "picks of windows": picks,
    "sums, scattered": lambda: scatters("f32", "add"),
    "integers, scattered": lambda: scatters("s32", "add"),
    "maxima, scattered": lambda: scatters("f32", "maximum"),
    "minima, scattered": lambda: scatters("f32", "minimum"),
    "wide maxima, scattered": lambda: scatters("f64", "maximum"),
    "bytes, scattered": lambda: scatters("u8", "multiply"),
    "narrow minima, scattered": lambda: scatters("bf16", "minimum"),
    "numbers, scattered over others": lambda: scatters("f32", ""),
    "wide integers, scattered over others": lambda: scatters("s64", ""),
    "transforms": lambda: transforms("c64", "f32"),
    "wide transforms": lambda: transforms("c128", "f64"),
    "solves": lambda: solves("f32"),
    "a circle, sorted": lambda: sorts(["s32", "f32"], CIRCLE),
    "narrow integers, sorted": lambda: sorts(["bf16", "s4"], NARROW),
    "products": lambda: dots("f32", "f32", "mk", "kn"),
    "products, both turned": lambda: dots("f32", "f32", "km", "nk"),
    "products of doubles": lambda: dots("f64", "f64", "mk", "nk"),
    "products of bf16": lambda: dots("bf16", "bf16", "mk", "kn"),
    "products of bf16, rhs turned": lambda: dots("bf16", "f32", "mk", "nk"),
    "products of bf16, both turned": lambda: dots("bf16", "f32", "km", "nk"),
    "products of f16 in a batch": lambda: dots("f16", "f16", "bmk", "kbn", 2),
    "products of bf16 in a batch": lambda: dots("bf16", "f32", "mbk", "bnk", 3),
    "products of bytes": lambda: dots("s8", "s32", "mk", "kn"),
    "products of integers": lambda: dots("s32", "s32", "km", "nk"),
    "products of complex numbers": lambda: dots("c64", "c64", "mk", "nk"),
    "vectors and matrices": lambda: vectors("f32"),
    "vectors and matrices of bf16": lambda: vectors("bf16"),
    "vectors and matrices of doubles": lambda: vectors("f64"),
    "sums of columns": lambda: columns("f32", "add", "0"),
    "maxima of columns": lambda: columns("f64", "maximum", "-inf"),
    "sums of columns of integers": lambda: columns("s32", "add", "0"),
    "rows of products": lambda: weights("f32", "mk", "nk"),
    "rows of products of bf16": lambda: weights("bf16", "mk", "kn"),
    "attention": lambda: weights("f32", "mk", "nk", 17),
    "attention of bf16": lambda: weights("bf16", "mk", "nk", 33),
    "convolutions": lambda: convolutions("f32", {"stride": 1, "pad": 1, "dilate": 1}),
    "convolutions, strided": lambda: convolutions("bf16", {"stride": 2, "pad": 0, "dilate": 1}),
    "convolutions, dilated": lambda: convolutions("f32", {"stride": 1, "pad": 2, "dilate": 2}),
    "convolutions in groups": lambda: convolutions("f32", {"stride": 1, "pad": 1, "dilate": 1}, 4),
    "words of Philox": lambda: random_bits("u32", "rng_philox", 3),
    "wide words of Philox": lambda: random_bits("s64", "rng_philox", 2),
    "words of Threefry": lambda: random_bits("u16", "rng_three_fry", 2),
    "wide words of Threefry": lambda: random_bits("u64", "rng_three_fry", 2),
    "numbers, sorted": lambda: sorts(["f32"], NUMBERS),
    "plain numbers with others, sorted": lambda: sorts(["f32", "s8"], compare("f32", "GT", 0)),
    "numbers and indices, sorted": lambda: sorts(["f32", "s32"], NUMBERS, index_operand=True),
    "total order, sorted": lambda: sorts(["bf16"], compare("bf16", "LT", 0, ", type=TOTALORDER")),
    "wide integers with others, sorted": lambda: sorts(["c64", "s64", "u16"], compare("s64", "LT", 1)),
    "two keys, sorted": lambda: sorts(["f32", "u32", "f64"], TWO_KEYS),
    "computed keys, sorted": lambda: sorts(["s32", "f32"], COMPUTED),
    "long lines, sorted": lambda: sorts(["f32", "u32", "f64"], TWO_KEYS, [(65539,), (2, 131075)]),
    "long lines of numbers, sorted": lambda: sorts(["f32"], NUMBERS, [(131075,), (65536,)]),
    "nine elements of long lines": lambda: tops("f32", 9, "false", [(2, 65537), (200001,)]),
    "three hundred elements of long lines": lambda: tops("f32", 300, "true", [(1, 200001), (3, 4097), (1, 301), (20, 1300)]),
    "one element of each line": lambda: tops("f32", 1, "true"),
    "three elements of each line": lambda: tops("s32", 3, "false"),
    "a hundred elements of each line": lambda: tops("f16", 100, "true"),
    "cumulative sums": lambda: scans("f32", "add", 0, False),
    "cumulative sums from the end": lambda: scans("f32", "add", 0, True),
    "cumulative maxima": lambda: scans("s32", "maximum", -2147483648, False),
    "cumulative products from the end": lambda: scans("bf16", "multiply", 1, True),
    "scans": scan_ops,
}


def run(tokamak, arguments):
    return subprocess.run([tokamak, "run", *arguments], capture_output=True, text=True, check=False)


def main():
    tokamak, names = sys.argv[1], sys.argv[2:]
    failed = 0
    chosen = {n: p for n, p in PROGRAMS.items() if not names or n in names}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in chosen.items():
            program, expected = Path(folder, "program.hlo"), Path(folder, "expected.npz")
            program.write_text(make().write())
            for backend, more in (("interp", ["--outputs", expected]), ("cpu", ["--expect", expected])):
                done = run(tokamak, [str(program), "--seed", "1", "--backend", backend, *map(str, more)])
                if done.returncode == 3 and "not part of this build" in done.stderr:
                    print("skipped: there is no cpu backend in this build")
                    sys.exit(77)
                if done.returncode != 0:
                    failed += 1
                    print(f"FAILED {name}, {backend}: {done.stderr.strip()} {done.stdout.strip()[-500:]}")
                    break
    print(f"odd sizes: {len(chosen)} programs, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
