#!/usr/bin/env python3
"""Writes the .bytes tests of this folder: a small valid program in MLIR bytecode, each with one error.

    tests/errors/bytecode/make.py

The program is  func main(%0: tensor<2x2xf32>) { %1 = transpose %0; %2 = constant; %3 = compare %1, %2; return %1 }.
A mark is placed at the error, so that the expected byte offset follows from the encoding and not from the reader.
"""
from pathlib import Path

HERE = Path(__file__).resolve().parent
STRINGS, DIALECTS, ENTRIES, OFFSETS, IR, PROPERTIES = 0, 1, 2, 3, 4, 8
NAMES = {0: "strings", 1: "dialects and ops", 2: "attributes and types", 3: "their sizes", 4: "ops", 8: "properties"}
MARK = object()  # marks the position of the error in a list of bytes


def var(value):
    """A varint: the number of trailing zero bits of the first byte is the number of bytes that follow."""
    for size in range(1, 9):
        if value < 1 << (7 * size):
            return list(((value << size) | (1 << (size - 1))).to_bytes(size, "little"))
    return [0, *value.to_bytes(8, "little")]


def svar(value):
    return var(value << 1 if value >= 0 else (-value << 1) - 1)


def cat(*parts):
    """Numbers are varints; lists are raw bytes."""
    out = []
    for part in parts:
        out += part if isinstance(part, list) else [MARK] if part is MARK else var(part)
    return out


def size_of(items):
    return sum(item is not MARK for item in items)


# Attributes (dialect, bytes); dialect 0 is builtin, 1 is vhlo.
LOCATION, MAIN, PUBLIC, NO_LIST, SIGNATURE, ORDER, VALUES, EQUAL, FLOAT = range(9)
MATRIX, F32, FUNCTION, I64, PAIR, PREDS, PRED = range(7)


class Program:
    def __init__(self):
        self.version, self.producer = var(6), list(b"StableHLO_v1.0.0\0")
        self.strings = ["builtin", "vhlo", "module", "func_v1", "transpose_v1", "constant_v1", "compare_v1", "return_v1",
                        "main", "public"]
        self.dialects = [0, 1]
        self.ops = [(0, [2]), (1, [3, 4, 5, 6, 7])]  # (dialect, strings)
        self.attributes = [(0, cat(15)), (1, cat(14, 8)), (1, cat(14, 9)), (1, cat(1, 0)), (1, cat(17, FUNCTION)),
                           (1, cat(15, PAIR, 16, [1] + [0] * 15)), (1, cat(15, MATRIX, 16, [0] * 16)),
                           (1, cat(3, 0)), (1, cat(4, 1))]
        self.types = [(1, cat(20, 2, svar(2), svar(2), F32)), (1, cat(4)), (1, cat(8, 1, MATRIX, 1, MATRIX)), (1, cat(14)),
                      (1, cat(20, 1, svar(2), I64)), (1, cat(20, 2, svar(2), svar(2), PRED)), (1, cat(0))]
        self.properties = [cat(NO_LIST, SIGNATURE, NO_LIST, MAIN, PUBLIC), cat(ORDER), cat(VALUES), cat(FLOAT, EQUAL)]
        self.body_ops = [self.op(2, properties=1, results=[MATRIX], operands=[0]),
                         self.op(3, properties=2, results=[MATRIX]),
                         self.op(4, properties=3, results=[PREDS], operands=[1, 2]),
                         self.op(5, operands=[1])]
        self.body_values, self.blocks, self.functions = 4, 1, 1
        self.func_properties = 0
        self.order = [STRINGS, DIALECTS, ENTRIES, OFFSETS, IR, PROPERTIES]
        self.extra = {}  # section -> bytes appended to it

    @staticmethod
    def op(name, properties=None, results=(), operands=(), regions=None, mark=False):
        mask = (64 if properties is not None else 0) | (2 if results else 0) | (4 if operands else 0) | (16 if regions else 0)
        out = cat(MARK if mark else [], name, [mask], LOCATION)
        if properties is not None:
            out += cat(properties)
        for items in (results, operands):
            if items:
                out += cat(len(items), *items)
        return out + (regions or [])

    def regions(self, contents):
        """One isolated region: a section of its own."""
        return cat(1 << 1 | 1, [IR], size_of(contents), contents)

    def ir(self):
        block = cat(len(self.body_ops) << 1 | 1, 1, MATRIX << 1, [0])
        for op in self.body_ops:
            block += op
        body = cat(self.blocks, self.body_values, block)
        function = self.op(1, properties=self.func_properties, regions=self.regions(body))
        module = cat(1, 0, self.functions << 1, function)
        return cat(1 << 1, self.op(0, regions=self.regions(module)))

    def section(self, number):
        if number == STRINGS:
            texts = [text.encode() + b"\0" for text in self.strings]
            lengths = [len(text) for text in reversed(texts)]
            return cat(len(texts), *lengths) + list(b"".join(texts))
        if number == DIALECTS:
            out = cat(len(self.dialects), *(d << 1 for d in self.dialects), sum(len(s) for _, s in self.ops))
            for dialect, strings in self.ops:
                out += cat(dialect, len(strings), *(s << 1 | 1 for s in strings))
            return out
        if number == ENTRIES:
            return [b for _, data in self.attributes + self.types for b in data]
        if number == OFFSETS:
            out = cat(len(self.attributes), len(self.types))
            for entries in (self.attributes, self.types):
                for dialect, data in entries:
                    out += cat(dialect, 1, size_of(data) << 1 | 1)
            return out
        if number == PROPERTIES:
            return cat(len(self.properties), *(cat(size_of(p), p) for p in self.properties))
        return self.ir()

    def chunks(self):
        """(comment, bytes, possibly with a MARK)."""
        yield "the magic number, the version, the producer", cat(list(b"ML\xefR"), self.version, self.producer)
        for number in self.order:
            data = self.extra.get(number, lambda d: d)(self.section(number))
            yield f"section {number}: {NAMES.get(number, 'unknown')}", cat([number], size_of(data), data)


def write(name, code, comment, program, at=None, cut=None):
    """`at`: the byte offset, if it cannot be marked; `cut`: truncates to this many bytes."""
    lines, offset, found = [], 0, at
    for title, data in program.chunks() if isinstance(program, Program) else program:
        whole = []
        for item in data:
            if item is MARK:
                found = offset + len(whole)
            else:
                whole.append(item)
        if cut is not None:
            whole = whole[:max(0, cut - offset)]
        offset += len(whole)
        if whole:
            lines.append(f"# {title}")
        for i in range(0, len(whole), 24):
            lines.append(" ".join(f"{b:02x}" for b in whole[i:i + 24]))
    found = offset if found == "end" else found
    head = [f"# {comment}", "# RUN: check"] + ([f"# ERROR: {code} at byte {found}"] if code else [])
    (HERE / f"{name}.bytes").write_text("\n".join(head + lines) + "\n")


def case(name, code, comment, change, **options):
    program = Program()
    change(program)
    write(name, code, comment, program, **options)


def attribute(index, *parts, dialect=1):
    return lambda p: p.attributes.__setitem__(index, (dialect, cat(*parts)))


def type_(index, *parts, dialect=1):
    return lambda p: p.types.__setitem__(index, (dialect, cat(*parts)))


def body(index, *args, **options):
    return lambda p: p.body_ops.__setitem__(index, Program.op(*args, **options))


def field(name, value):
    return lambda p: setattr(p, name, value)


def extra(number, change):
    return lambda p: p.extra.__setitem__(number, change)


def chain(program, length):
    """`length` types, each a tuple of the next type; the first is the marked one."""
    first = len(program.types)
    for i in range(length):
        program.types.append((1, cat(MARK if i == 198 else [], 23, 1, first + i + 1)))
    program.types.append((1, cat(4)))
    program.types[FUNCTION] = (1, cat(8, 1, first, 1, MATRIX))


def bomb(program):
    """Lists that contain the next list twice: 2^60 elements from a few bytes."""
    first = len(program.attributes)
    for i in range(60):
        program.attributes.append((1, cat(MARK if i == 41 else [], 1, 2, first + i + 1, first + i + 1)))
    program.attributes.append((1, cat(1, 0)))
    program.properties[0] = cat(first, SIGNATURE, NO_LIST, MAIN, PUBLIC)


def main():
    for old in HERE.glob("*.bytes"):
        old.unlink()
    write("valid", None, "The valid program that the others corrupt.", Program())

    # Missing data.
    write("tk1201_only_magic", "TK1201", "Four bytes.", [("the magic number", list(b"ML\xefR"))], at=4)
    write("tk1201_open_producer", "TK1201", "The producer has no end.",
          [("the magic number, the version, the producer", cat(list(b"ML\xefR"), 6, MARK, list(b"StableHLO")))])

    locations = []
    offset = 0
    for _, data in Program().chunks():
        locations.append((offset, size_of(data)))
        offset += size_of(data)
    for number, (begin, length) in list(enumerate(locations))[1:]:
        head = length - size_of(Program().section(Program().order[number - 1]))
        write(f"tk1201_cut_in_section_{Program().order[number - 1]}", "TK1201", "The file ends inside a section.", Program(),
              at=begin + head, cut=begin + length - 1)
    case("tk1201_two_to_the_60_strings", "TK1201", "A table of 2^60 strings in a few bytes: nothing is allocated for them.",
         extra(STRINGS, lambda d: cat(MARK, 1 << 60) + d[1:]))
    case("tk1201_two_to_the_60_attributes", "TK1201", "2^60 attributes.",
         extra(OFFSETS, lambda d: cat(MARK, 1 << 60) + d[1:]))
    case("tk1201_two_to_the_60_properties", "TK1201", "2^60 properties.",
         extra(PROPERTIES, lambda d: cat(MARK, 1 << 60) + d[1:]))
    case("tk1201_list_of_2_to_the_60", "TK1201", "A list that claims 2^60 attributes.", attribute(NO_LIST, 1, MARK, 1 << 60))

    # Versions.
    case("tk1202_version_3", "TK1202", "Bytecode of version 3.", field("version", cat(MARK, 3)))
    case("tk1202_version_7", "TK1202", "Bytecode of version 7, which does not exist yet.", field("version", cat(MARK, 7)))
    case("tk1203_vhlo_0_9", "TK1203", "VHLO before 1.0.", field("producer", cat(MARK, list(b"StableHLO_v0.9.0\0"))))
    case("tk1203_vhlo_without_number", "TK1203", "A version that is none.", field("producer", cat(MARK, list(b"StableHLO_vx\0"))))

    # Sections.
    header = size_of(list(Program().chunks())[0][1])
    case("tk1204_unknown_section", "TK1204", "A section of a number that is not known.",
         lambda p: (p.order.insert(0, 42), setattr(p, "section", lambda n, s=p.section: [0] if n == 42 else s(n))), at=header)
    case("tk1204_no_strings", "TK1204", "A section is missing.", lambda p: p.order.remove(STRINGS), at="end")
    case("tk1204_no_ops", "TK1204", "There is no program.", lambda p: p.order.remove(IR), at="end")
    case("tk1204_two_sections", "TK1204", "A section occurs twice.", lambda p: p.order.insert(1, STRINGS),
         at=locations[1][0] + locations[1][1])
    aligned = list(Program().chunks())[0]
    write("tk1204_bad_padding", "TK1204", "Padding is made of 0xCB.",
          [aligned, ("section 0, aligned to 64 bytes", cat([0x80], 1, 64, [0xCB, 0xCB], MARK, [0x00] * 40))])
    write("tk1204_aligned_to_nothing", "TK1204", "Nothing can be aligned to 0 bytes.",
          [aligned, ("section 0, aligned to 0 bytes", cat(MARK, [0x80], 1, 0, [0]))])

    # References.
    case("tk1205_string", "TK1205", "A string that is not in the table.", attribute(MAIN, 14, MARK, 900))
    case("tk1205_type", "TK1205", "A type that is not in the table.", type_(MATRIX, 20, 2, svar(2), svar(2), MARK, 900))
    case("tk1205_attribute", "TK1205", "An attribute that is not in the table.",
         lambda p: p.properties.__setitem__(1, cat(MARK, 900)))
    case("tk1205_op", "TK1205", "An op that is not in the table.", body(0, 900, operands=[0], mark=True))
    case("tk1205_properties", "TK1205", "Properties that are not in the table.",
         body(0, 2, properties=cat(MARK, 900), results=[MATRIX], operands=[0]))
    case("tk1205_huge", "TK1205", "A number of 64 bits.", attribute(MAIN, 14, MARK, (1 << 64) - 1))

    # Excess data.
    case("tk1206_attribute", "TK1206", "A byte is left over in an attribute.", attribute(EQUAL, 3, 0, MARK, [1]))
    case("tk1206_type", "TK1206", "A byte is left over in a type.", type_(F32, 4, MARK, [1]))
    case("tk1206_strings", "TK1206", "A byte is left over behind the strings.",
         extra(STRINGS, lambda d: cat(d, MARK, [0])))
    case("tk1206_ops", "TK1206", "A byte is left over behind the ops.", extra(IR, lambda d: cat(d, MARK, [0])))

    # Strings.
    def unterminated(data):
        data = list(data)
        lengths = 1 + len(Program().strings)
        return data[:lengths] + [MARK] + data[lengths:lengths + 7] + [0x21] + data[lengths + 8:]
    case("tk1207_no_nul", "TK1207", "A string without its NUL.", extra(STRINGS, unterminated))

    # Cycles, depth, and few bytes that expand to many.
    case("tk1208_attribute", "TK1208", "A list that holds itself.", attribute(NO_LIST, MARK, 1, 1, NO_LIST))
    case("tk1208_type", "TK1208", "A tuple that holds itself.", type_(MATRIX, MARK, 23, 1, MATRIX))
    case("tk1003_types", "TK1003", "Tuples nested 300 levels deep.", lambda p: chain(p, 300))
    case("tk1004_unfolding", "TK1004", "Lists of lists, twice each: a few bytes stand for 2^60 of them.", bomb)

    # Kinds.
    case("tk1209_kind", "TK1209", "VHLO has no attribute 99.", attribute(EQUAL, MARK, 99, 0))
    case("tk1209_dialect", "TK1209", "An attribute of a dialect that is not known.",
         lambda p: (p.strings.append("gpu"), p.dialects.append(len(p.strings) - 1),
                    p.attributes.__setitem__(EQUAL, (2, cat(MARK, 1)))))
    case("tk1210_kind", "TK1210", "VHLO has no type 99.", type_(F32, MARK, 99))
    case("tk1210_tensor_of_tensors", "TK1210", "The elements of a tensor are numbers.",
         type_(MATRIX, 20, 2, svar(2), svar(2), MARK, PAIR))
    case("tk1211_op", "TK1211", "VHLO has no such op.", lambda p: (p.strings.__setitem__(4, "frobnicate_v1"),
                                                                  body(0, 2, properties=1, results=[MATRIX], operands=[0], mark=True)(p)))
    case("tk1212_none", "TK1212", "transpose without its permutation.", body(0, 2, results=[MATRIX], operands=[0], mark=True))
    case("tk1212_too_few", "TK1212", "compare with one property of two.", lambda p: p.properties.__setitem__(3, cat(FLOAT, MARK)))
    case("tk1212_too_many", "TK1212", "transpose with two properties.", lambda p: p.properties.__setitem__(1, cat(ORDER, MARK, ORDER)))
    case("tk1213_operand", "TK1213", "Value 12 does not exist.",
         body(0, 2, properties=1, results=[MATRIX], operands=[cat(MARK, 12)]))
    case("tk1213_later", "TK1213", "Value 3 is defined later.",
         body(0, 2, properties=1, results=[MATRIX], operands=[cat(MARK, 3)]))
    case("tk1213_more_results", "TK1213", "The body says that it defines two values.",
         lambda p: (setattr(p, "body_values", 2), body(1, 3, properties=2, results=[MATRIX], mark=True)(p)))
    case("tk1215_bytes", "TK1215", "12 bytes for four f32.", attribute(VALUES, MARK, 15, MATRIX, 12, [0] * 12))
    case("tk1215_two_to_the_57", "TK1215", "A constant that claims 2^57 elements and has 16 bytes.",
         lambda p: (type_(MATRIX, 20, 2, svar(1 << 28), svar(1 << 29), F32)(p), attribute(VALUES, MARK, 15, MATRIX, 16, [0] * 16)(p)))
    case("tk1216_name", "TK1216", "The name of the function is a list.",
         lambda p: p.properties.__setitem__(0, cat(NO_LIST, SIGNATURE, NO_LIST, MARK, NO_LIST, PUBLIC)))
    case("tk1217_direction", "TK1217", "No comparison has the number 9.", attribute(EQUAL, MARK, 3, 9))
    case("tk1217_dimensions", "TK1217", "2^62 times 2^62 elements.", type_(MATRIX, 20, MARK, 2, svar(1 << 62), svar(1 << 62), F32))

    # Regions.
    def two_blocks(program):
        program.blocks = cat(MARK, 2)
    case("tk1214_two_blocks", "TK1214", "A function of two blocks.", two_blocks)
    case("tk1214_two_modules", "TK1214", "Two modules.", extra(IR, lambda d: cat(MARK, 2 << 1) + d[1:]))

    # Well formed, but invalid.
    case("tk2011_result", "TK2011", "compare gives preds of another size: the verifier names the op's byte.",
         lambda p: (p.types.append((1, cat(20, 2, svar(2), svar(3), PRED))),
                    body(2, 4, properties=3, results=[7], operands=[1, 2], mark=True)(p)))
    # Flipped bits: every one of these is rejected, none crashes the reader (generated.py flips all of them).


if __name__ == "__main__":
    main()
