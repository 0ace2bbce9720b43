#!/usr/bin/env python3
"""Writes a StableHLO program of any size as MLIR bytecode, to measure the reader.

    make_bytecode.py OUT --instructions 1000000 --constant-mb 0 --locations

One function of elementwise, broadcast, slice, compare and reduce ops over a few shapes, each op with its own location
(as JAX writes them) with --locations, and --constant-mb MB of f32 constants, 4 MB each.
"""
import argparse
import struct


def varint(value):
    """MLIR's prefix varint: the number of trailing zeros of the first byte is the number of bytes that follow."""
    for extra in range(8):
        if value < 1 << (7 * (extra + 1)):
            return ((value << (extra + 1)) | (1 << extra)).to_bytes(extra + 1, "little")
    return b"\0" + value.to_bytes(8, "little")


def svarint(value):
    return varint((value << 1) ^ (value >> 63))


class Table:
    """Entries by content, numbered in order of first use."""

    def __init__(self):
        self.index, self.items = {}, []

    def add(self, item):
        if item not in self.index:
            self.index[item] = len(self.items)
            self.items.append(item)
        return self.index[item]


class Writer:
    def __init__(self, producer="StableHLO_v1.16.2"):
        self.producer = producer
        self.strings, self.attrs, self.types, self.props, self.ops = Table(), Table(), Table(), Table(), Table()
        self.dialects = ["builtin", "vhlo"]
        for name in self.dialects:
            self.strings.add(name)

    # -- attributes and types: (dialect, bytes)
    def string(self, text):
        return self.attrs.add((1, varint(14) + varint(self.strings.add(text))))

    def builtin_string(self, text):
        return self.attrs.add((0, varint(2) + varint(self.strings.add(text))))

    def scalar(self, code):
        return self.types.add((1, varint(code)))

    def tensor(self, dims, element):
        body = varint(20) + varint(len(dims)) + b"".join(svarint(d) for d in dims) + varint(element)
        return self.types.add((1, body))

    def function_type(self, inputs, outputs):
        lists = b"".join(varint(len(l)) + b"".join(map(varint, l)) for l in (inputs, outputs))
        return self.types.add((1, varint(8) + lists))

    def attr(self, code, body=b""):
        return self.attrs.add((1, varint(code) + body))

    def dense(self, type_index, data):
        return self.attr(15, varint(type_index) + varint(len(data)) + data)

    def i64s(self, values):
        data = b"".join(struct.pack("<q", v) for v in values)
        return self.dense(self.tensor([len(values)], self.scalar(14)), data)

    def unknown_location(self):
        return self.attrs.add((0, varint(15)))

    def location(self, name, file, line):
        where = self.attrs.add((0, varint(22) + varint(self.builtin_string(file)) + varint(2) + varint(line) + varint(4)))
        return self.attrs.add((0, varint(14) + varint(self.builtin_string(name)) + varint(where)))

    def properties(self, *attrs):
        return self.props.add(b"".join(map(varint, attrs)))

    def op_name(self, dialect, name):
        self.strings.add(name)
        return self.ops.add((dialect, name))

    # -- IR
    def op(self, name, loc, results=(), operands=(), props=None, regions=None, dialect=1):
        mask = (2 if results else 0) | (4 if operands else 0) | (16 if regions else 0) | (64 if props is not None else 0)
        out = varint(self.op_name(dialect, name)) + bytes([mask]) + varint(loc)
        if props is not None:
            out += varint(props)
        if results:
            out += varint(len(results)) + b"".join(map(varint, results))
        if operands:
            out += varint(len(operands)) + b"".join(map(varint, operands))
        if regions:
            body = b"".join(regions)
            out += varint(len(regions) << 1 | 1) + self.section(4, body)  # isolated
        return out

    @staticmethod
    def region(arguments, ops, op_count, value_count):
        out = varint(1) + varint(value_count) + varint(op_count << 1 | bool(arguments))
        if arguments:
            out += varint(len(arguments)) + b"".join(varint(t << 1) for t in arguments) + b"\0"
        return out + ops

    @staticmethod
    def section(number, body):
        return bytes([number]) + varint(len(body)) + body

    def groups(self, entries):
        """Runs of one dialect: dialect, count, and each entry's size with the flag for a custom encoding."""
        out, begin = [], 0
        while begin < len(entries):
            end = begin
            while end < len(entries) and entries[end][0] == entries[begin][0]:
                end += 1
            out.append(varint(entries[begin][0]) + varint(end - begin))
            out += [varint(len(body) << 1 | 1) for _, body in entries[begin:end]]
            begin = end
        return b"".join(out)

    def file(self, module_op):
        ir = varint(1 << 1) + module_op
        names = sorted(self.ops.items, key=lambda op: op[0])
        assert names == self.ops.items, "ops of one dialect must be named together"
        dialects = varint(2) + b"".join(varint(self.strings.index[d] << 1) for d in self.dialects)
        dialects += varint(len(names))
        for number in range(2):
            group = [name for d, name in names if d == number]
            if group:
                dialects += varint(number) + varint(len(group))
                dialects += b"".join(varint(self.strings.index[n] << 1 | 1) for n in group)
        offsets = varint(len(self.attrs.items)) + varint(len(self.types.items))
        offsets += self.groups(self.attrs.items) + self.groups(self.types.items)
        entries = b"".join(body for _, body in self.attrs.items + self.types.items)
        texts = [s.encode() + b"\0" for s in self.strings.items]
        strings = varint(len(texts)) + b"".join(varint(len(t)) for t in reversed(texts)) + b"".join(texts)
        props = varint(len(self.props.items)) + b"".join(varint(len(p)) + p for p in self.props.items)
        parts = [(1, dialects), (3, offsets), (2, entries), (4, ir), (6, varint(0)), (5, b""), (0, strings), (8, props)]
        head = b"ML\xefR" + varint(6) + self.producer.encode() + b"\0"
        return head + b"".join(self.section(number, body) for number, body in parts)


def program(instructions, constant_mb, locations, late=False):
    w = Writer()
    w.op_name(0, "module")
    unknown = w.unknown_location()
    f32, i1 = w.scalar(4), w.scalar(0)
    scalar, vector = w.tensor([], f32), w.tensor([1024], f32)
    flags, matrix = w.tensor([1024], i1), w.tensor([64, 1024], f32)
    broadcast = w.properties(w.i64s([1]))
    compare = w.properties(w.attr(4, varint(1)), w.attr(3, varint(3)))
    accuracy = w.properties(w.attr(20, svarint(0) + svarint(0) + svarint(0) + varint(w.attr(19, varint(0)))))
    reduce_dims = w.properties(w.i64s([0]))

    def sum_region():
        body = w.op("add_v1", unknown, [scalar], [0, 1]) + w.op("return_v1", unknown, [], [2])
        return w.region([scalar, scalar], body, 2, 3)

    ops, count, values = [], 0, 1
    last = 0  # the newest vector
    zero = w.properties(w.dense(scalar, struct.pack("<f", 0.0)))

    def add(name, results, operands, props=None, regions=None):
        nonlocal count, values
        loc = w.location(f"jit(f)/{name}/{count}", "model.py", count % 5000) if locations else unknown
        ops.append(w.op(name, loc, results, operands, props, regions))
        count += 1
        values += len(results)
        return values - 1

    init = add("constant_v1", [scalar], [], zero)
    element = 1 << 20
    for i in range(constant_mb // 4):
        same, other = b"\x11\x22\x33\x44" * (element - 1), struct.pack("<I", i)
        data = same + other if late else other + same
        add("constant_v1", [w.tensor([element], f32)], [], w.properties(w.dense(w.tensor([element], f32), data)))
    while count < instructions:
        step = add("add_v1", [vector], [last, 0])
        wide = add("broadcast_in_dim_v1", [matrix], [step], broadcast)
        wide = add("multiply_v1", [matrix], [wide, wide])
        wide = add("exponential_v2", [matrix], [wide], accuracy)
        total = add("reduce_v1", [vector], [wide, init], reduce_dims, [sum_region()])
        flag = add("compare_v1", [flags], [total, step], compare)
        last = add("select_v1", [vector], [flag, total, step])
    ops.append(w.op("return_v1", unknown, [], [last]))
    function = w.function_type([vector], [vector])
    props = w.properties(
        w.attr(1, varint(0)), w.attr(17, varint(function)), w.attr(1, varint(0)), w.string("main"), w.string("public")
    )
    body = w.region([vector], b"".join(ops), len(ops), values)
    func = w.op("func_v1", unknown, props=props, regions=[body])
    module = w.op("module", unknown, props=w.props.add(varint(0) + varint(0)), regions=[w.region([], func, 1, 0)], dialect=0)
    return w.file(module)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out")
    parser.add_argument("--instructions", type=int, default=100_000, help="ops of main; a reduce brings 4 more")
    parser.add_argument("--constant-mb", type=int, default=0)
    parser.add_argument("--locations", action="store_true", help="a location of its own for each op")
    parser.add_argument("--late", action="store_true", help="elements of a constant are equal but for the last")
    args = parser.parse_args()
    data = program(args.instructions, args.constant_mb, args.locations, args.late)
    with open(args.out, "wb") as out:
        out.write(data)
    print(f"{args.out}: {len(data) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
