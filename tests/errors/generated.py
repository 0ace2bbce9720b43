#!/usr/bin/env python3
"""Bad inputs that are too large to keep: made here, given to `tokamak`, and thrown away.

    tests/errors/generated.py build/bin/tokamak [NAME...]

Every input runs within 4 GiB of address space and 10 s of processor time, and must end in an exit code of ours with a
located error of the code that is expected (or none), never in a signal. The last line is a tally.
"""
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from pathlib import Path

ADDRESS_SPACE = 4 << 30
SECONDS = 10  # of processor time; wall time is more on a busy machine
DEEP = 100_000
MANY = 1_000_000
HERE = Path(__file__).resolve().parent

CASES = {}  # name -> function(folder) giving (words, expected codes, expected place or None)


def case(function):
    CASES[function.__name__] = function
    return function


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def write(folder, name, *parts):
    """Parts are text or (count, text)."""
    path = folder / name
    with open(path, "wb") as file:
        for part in parts:
            count, text = part if isinstance(part, tuple) else (1, part)
            data = text.encode() if isinstance(text, str) else text
            block = max(1, min(count, (1 << 20) // max(1, len(data))))
            for _ in range(count // block):
                file.write(data * block)
            file.write(data * (count % block))
    return str(path)


def hlo(folder, *parts, name="x.hlo"):
    return write(folder, name, *parts)


# ---- depth

@case
def deep_tuple_shape(d):
    return ["check", hlo(d, "ENTRY e {\n  ROOT x = ", (DEEP, "("), "f32[]", (DEEP, ")"), " parameter(0)\n}\n")], "TK1003", "2:211"


@case
def deep_operands(d):
    return ["check", hlo(d, "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = ", (DEEP, "f32[] negate("), "x", (DEEP, ")"), "\n}\n")], "TK1003", None


@case
def deep_literal(d):
    return ["check", hlo(d, "ENTRY e {\n  ROOT x = f32[2] constant(", (DEEP, "{"), "1", (DEEP, "}"), ")\n}\n")], "TK1307", "2:29"


@case
def deep_tuple_literal(d):
    return ["check", hlo(d, "ENTRY e {\n  ROOT x = (f32[]) constant(", (DEEP, "("), "1", (DEEP, ")"), ")\n}\n")], None, None


@case
def deep_sharding(d):
    return ["check", hlo(d, "ENTRY e {\n  ROOT x = f32[2] parameter(0), sharding=", (DEEP, "{"), "replicated", (DEEP, "}"), "\n}\n")], "TK1003", None


@case
def deep_frontend_attributes(d):
    return ["check", hlo(d, "ENTRY e {\n  ROOT x = f32[2] parameter(0), frontend_attributes={a=", (DEEP, "{"), (DEEP, "}"), "}\n}\n")], None, None


@case
def deep_backend_config(d):
    return ["check", hlo(d, "ENTRY e {\n  ROOT x = f32[2] parameter(0), backend_config=", (DEEP, "{\"a\":"), "1", (DEEP, "}"), "\n}\n")], None, None


@case
def deep_origin(d):
    return ["check", hlo(d, "ENTRY e {\n  ROOT x = f32[2] parameter(0), origin=", (DEEP, "{("), (DEEP, ")}"), "\n}\n")], None, None


@case
def deep_mlir_attribute(d):
    return ["check", write(d, "x.mlir", "module attributes {a = ", (DEEP, "["), (DEEP, "]"), "} {}\n")], "TK1003", None


@case
def deep_mlir_dictionary(d):
    return ["check", write(d, "x.mlir", "module attributes {a = ", (DEEP, "{a = "), "1", (DEEP, "}"), "} {}\n")], "TK1003", None


@case
def deep_mlir_type(d):
    return ["check", write(d, "x.mlir", "func.func @main(%a: ", (DEEP, "tuple<"), "i1", (DEEP, ">"), ") { return }\n")], "TK1003", None


@case
def deep_mlir_dense(d):
    return ["check", write(d, "x.mlir", "func.func @main() {\n  %0 = stablehlo.constant dense<", (DEEP, "["), "1.0", (DEEP, "]"), "> : tensor<1x1xf32>\n  return\n}\n")], "TK1106", None


@case
def deep_mlir_location(d):
    return ["check", write(d, "x.mlir", "func.func @main() {\n  return loc(", (DEEP, 'callsite("f" at '), '"f"', (DEEP, ")"), ")\n}\n")], "TK1003", None


@case
def deep_mlir_fused_location(d):
    return ["check", write(d, "x.mlir", "func.func @main() {\n  return loc(", (DEEP, "fused["), '"f"', (DEEP, "]"), ")\n}\n")], "TK1003", None


@case
def deep_mlir_regions(d):
    return ["check", write(d, "x.mlir", "func.func @main(%i: tensor<i32>) -> tensor<i32> {\n",
                           (DEEP, '%x = "stablehlo.case"(%i) ({\n'), "stablehlo.return %i : tensor<i32>\n",
                           (DEEP, "}) : (tensor<i32>) -> tensor<i32>\nstablehlo.return %x : tensor<i32>\n"), "}\n")], "TK1003", None


@case
def deep_mlir_modules(d):
    return ["check", write(d, "x.mlir", (DEEP, "module {\n"), (DEEP, "}\n"))], "TK1507", "2:1"


@case
def deep_mlir_unknown_attribute(d):
    return ["check", write(d, "x.mlir", "module attributes {a = #foo.bar<", (DEEP, "<["), (DEEP, "]>"), ">} {}\n")], None, None


@case
def deep_aliases(d):
    """#a99999 is defined by #a99998, and so on; nothing recurses."""
    lines = "".join(f"#a{i} = [#a{i - 1}]\n" for i in range(1, DEEP))
    return ["check", write(d, "x.mlir", f"module attributes {{a = #a{DEEP - 1}}} {{}}\n", "#a0 = []\n", lines)], "TK1003", None


@case
def deep_aliases_in_order(d):
    """The same the other way round: each is read when the one before is known."""
    lines = "".join(f"#a{i} = [#a{i - 1}]\n" for i in range(1, DEEP))
    return ["check", write(d, "x.mlir", "#a0 = []\n", lines, f"module attributes {{a = #a{DEEP - 1}}} {{}}\n")], "TK1003", None


@case
def deep_type_aliases_in_order(d):
    lines = "".join(f"!t{i} = tuple<!t{i - 1}>\n" for i in range(1, DEEP))
    return ["check", write(d, "x.mlir", "!t0 = tuple<tensor<i1>>\n", lines, f"func.func @main(%x: !t{DEEP - 1}) {{\n  return\n}}\n")], "TK1003", None


@case
def deep_tuples(d):
    """Every instruction is a tuple of the one before; no shape is written."""
    lines = "".join(f"  v{i} = tuple(v{i - 1})\n" for i in range(1, DEEP))
    return ["check", hlo(d, "ENTRY e {\n  v0 = f32[] parameter(0)\n", lines, "}\n")], "TK2021", "203:10"


@case
def deep_location_aliases(d):
    lines = "".join(f'#loc{i} = loc(callsite("f" at #loc{i - 1}))\n' for i in range(1, DEEP))
    return ["check", write(d, "x.mlir", '#loc0 = loc("f")\n', lines, f"module {{}} loc(#loc{DEEP - 1})\n")], "TK1003", None


@case
def doubling_locations(d):
    lines = "".join(f"#loc{i} = loc(callsite(#loc{i - 1} at #loc{i - 1}))\n" for i in range(1, 60))
    return ["check", write(d, "x.mlir", '#loc0 = loc("f":1:1)\n', lines, "func.func @main() {\n  return loc(#loc59)\n}\n")], None, None


@case
def many_fused_locations(d):
    names = ", ".join(f'"a{i}"' for i in range(50_000))
    return ["check", write(d, "x.mlir", f"func.func @main() {{\n  return loc(fused[{names}])\n}}\n")], None, None


@case
def deep_resources(d):
    return ["check", write(d, "x.mlir", "func.func @main() {\n  return\n}\n{-#\n", (DEEP, "{"), (DEEP, "}"), "\n#-}\n")], "TK1003", "5:201"


@case
def deep_calls(d):
    """A legal program: a hundred thousand computations, each calling the one before."""
    parts = ["f0 { ROOT a = s32[] parameter(0) }\n"]
    parts += [f"f{i} {{ a = s32[] parameter(0) ROOT b = s32[] call(a), to_apply=f{i - 1} }}\n" for i in range(1, DEEP)]
    return ["check", hlo(d, "".join(parts), f"ENTRY e {{ a = s32[] parameter(0) ROOT b = s32[] call(a), to_apply=f{DEEP - 1} }}\n")], None, None


@case
def deep_calls_run(d):
    words, _, _ = deep_calls(d)
    return ["run", "--seed=1", words[1]], "TK5003", None


@case
def long_call_cycle(d):
    parts = [f"f{i} {{ a = s32[] parameter(0) ROOT b = s32[] call(a), to_apply=f{(i + 1) % DEEP} }}\n" for i in range(DEEP)]
    return ["check", hlo(d, "".join(parts), "ENTRY e { a = s32[] parameter(0) ROOT b = s32[] call(a), to_apply=f0 }\n")], "TK2007", None


@case
def long_chain(d):
    """A legal program: a million instructions, each taking the one before."""
    return ["check", hlo(d, "ENTRY e {\n  v0 = f32[] parameter(0)\n",
                         "".join(f"  v{i} = f32[] negate(v{i - 1})\n" for i in range(1, MANY)), "}\n")], None, None


# ---- width

@case
def million_operands(d):
    return ["check", hlo(d, "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = tuple(x", (MANY - 1, ", x"), ")\n}\n")], None, None


@case
def million_operands_of_add(d):
    return ["check", hlo(d, "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[] add(x", (MANY - 1, ", x"), ")\n}\n")], "TK2008", "3:18"


@case
def million_dimensions(d):
    return ["check", hlo(d, "ENTRY e {\n  ROOT x = f32[1", (MANY - 1, ",1"), "] parameter(0)\n}\n")], "TK1306", "2:15"


@case
def million_dimensions_mlir(d):
    return ["check", write(d, "x.mlir", "func.func @main(%x: tensor<", (MANY, "1x"), "f32>) {\n  return\n}\n")], "TK1004", "1:28"


@case
def million_digits(d):
    return ["check", hlo(d, "ENTRY e {\n  ROOT x = f32[", (MANY, "9"), "] parameter(0)\n}\n")], "TK1301", "2:16"


@case
def million_digits_float(d):
    return ["check", hlo(d, "ENTRY e {\n  ROOT x = f32[] constant(0.", (MANY, "3"), ")\n}\n")], None, None


@case
def huge_exponent(d):
    return ["check", hlo(d, "ENTRY e {\n  ROOT x = f32[] constant(1e", (MANY, "9"), ")\n}\n")], None, None


@case
def huge_exponent_mlir(d):
    return ["check", write(d, "x.mlir", "func.func @main() {\n  %0 = stablehlo.constant dense<1.0e", (MANY, "9"), "> : tensor<f32>\n  return\n}\n")], None, None


@case
def million_digits_mlir(d):
    return ["check", write(d, "x.mlir", "func.func @main() {\n  %0 = stablehlo.constant dense<", (MANY, "9"), "> : tensor<i32>\n  return\n}\n")], "TK1106", None


@case
def million_attributes(d):
    """One name, a million times: found without comparing each with each."""
    return ["check", hlo(d, "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[] negate(x)",
                         "".join(f", a{i}=1" for i in range(MANY)), "\n}\n")], "TK1308", None


@case
def many_frontend_attributes(d):
    return ["check", hlo(d, "ENTRY e {\n  x = f32[] parameter(0)\n  ROOT y = f32[] negate(x), frontend_attributes={a=\"1\"",
                         "".join(f",a{i}=\"1\"" for i in range(100_000)), "}\n}\n")], None, None


@case
def many_mlir_attributes(d):
    return ["check", write(d, "x.mlir", "module attributes {a = 1", "".join(f", a{i} = 1" for i in range(100_000)), "} {}\n")], None, None


@case
def many_pieces(d):
    """A hundred thousand programs in one file: each says its own line, and lines are not counted again for each."""
    return ["check", hlo(d, (100_000, "// -----\nHloModule\n"))], "TK1301", None


@case
def many_splats(d):
    """2^57 elements each, and no memory for any of them."""
    return ["check", write(d, "x.mlir", "func.func @main() {\n",
                           "".join(f"  %{i} = stablehlo.constant dense<1.0> : tensor<144115188075855872xf32>\n" for i in range(10_000)), "  return\n}\n")], None, None


@case
def billion_laughs(d):
    """Aliases of lists of aliases: a few lines stand for 10^30 attributes."""
    lines = "".join(f"#a{i} = [{', '.join([f'#a{i - 1}'] * 10)}]\n" for i in range(1, 30))
    return ["check", write(d, "x.mlir", "#a0 = [1]\n", lines, "module attributes {a = #a29} {}\n")], "TK1004", None


@case
def nested_tuple_types(d):
    """Types of types by alias: 2^60 leaves."""
    lines = "".join(f"!t{i} = tuple<!t{i - 1}, !t{i - 1}>\n" for i in range(1, 60))
    return ["check", write(d, "x.mlir", "!t0 = tuple<tensor<i1>>\n", lines, "func.func @main(%x: !t59) {\n  return\n}\n")], "TK1004", None


@case
def doubling_tuples(d):
    """Every instruction is a tuple of the one before, twice: 2^100 leaves in 100 lines."""
    lines = "".join(f"  v{i} = tuple(v{i - 1}, v{i - 1})\n" for i in range(1, 100))
    return ["check", hlo(d, "ENTRY e {\n  v0 = f32[] parameter(0)\n", lines, "}\n")], "TK2010", "24:9"


# ---- long lines and odd bytes

@case
def gigabyte_line(d):
    return ["check", hlo(d, "HloModule m\nENTRY e {\n  x = ", (1 << 30, "x"), "\n}\n")], "TK1302", "3:7"


@case
def gigabyte_of_nul(d):
    path = d / "x.hlo"
    path.write_bytes(b"HloModule m\nENTRY e {\n  x = ")
    os.truncate(path, 1 << 30)
    return ["check", str(path)], "TK1301", "3:7"


@case
def gigabyte_of_blanks(d):
    return ["check", hlo(d, (1 << 30, " "), "?\n")], "TK1001", f"1:{(1 << 30) + 1}"


@case
def gigabyte_comment(d):
    return ["check", write(d, "x.mlir", "// ", (1 << 30, "x"), "\nfunc.func @main() {\n  frobnicate\n}\n")], None, None


@case
def gigabyte_string(d):
    return ["check", write(d, "x.mlir", 'module attributes {a = "', (1 << 30, "x"))], "TK1102", "1:24"


@case
def gigabyte_of_open_braces(d):
    return ["check", hlo(d, "ENTRY e {\n  x = f32[] parameter(0), backend_config=", (1 << 28, "{"))], "TK1301", None


@case
def many_lines(d):
    return ["check", hlo(d, (1 << 28, "\n"), "?\n")], "TK1001", f"{(1 << 28) + 1}:1"


@case
def invalid_utf8(d):
    return ["check", hlo(d, b"ENTRY e {\n  ROOT \xff\xfe = f32[] parameter(0)\n}\n")], "TK1301", "2:8"


@case
def invalid_utf8_mlir(d):
    return ["check", write(d, "x.mlir", b"func.func @main() {\n  \xc3\x28\n}\n")], "TK1101", "2:3"


@case
def nul_in_mlir(d):
    return ["check", write(d, "x.mlir", b"func.func @main() {\n  return\0\n}\n")], "TK1101", "2:9"


@case
def carriage_returns(d):
    return ["check", hlo(d, "ENTRY e {\r\n  ROOT x = f31[] parameter(0)\r\n}\r\n")], "TK1306", "2:12"


@case
def a_folder(d):
    return ["check", str(d)], "TK1005", None


@case
def a_missing_file(d):
    return ["check", str(d / "nothing")], "TK1005", None


@case
def a_file_without_permission(d):
    path = hlo(d, "ENTRY e { ROOT x = f32[] parameter(0) }\n")
    os.chmod(path, 0)
    return ["check", path], None if os.geteuid() == 0 else "TK1005", None


# ---- bytecode

def valid_bytecode():
    lines = (HERE / "bytecode/valid.bytes").read_text().splitlines()
    return b"".join(bytes.fromhex(line) for line in lines if line and not line.startswith("#"))


def many_files(folder, contents):
    return ["check", *(write(folder, f"{i}.mlirbc", data) for i, data in enumerate(contents))]


@case
def bytecode_valid(d):
    return many_files(d, [valid_bytecode()]), None, None


@case
def bytecode_cut_anywhere(d):
    data = valid_bytecode()
    return many_files(d, [data[:n] for n in range(4, len(data))]), "TK12", None


@case
def bytecode_bit_flipped_anywhere(d):
    data = valid_bytecode()
    return many_files(d, [data[:n] + bytes([data[n] ^ 1 << bit]) + data[n + 1:] for n in range(4, len(data)) for bit in range(8)]), "any", None


@case
def bytecode_byte_dropped_anywhere(d):
    data = valid_bytecode()
    return many_files(d, [data[:n] + data[n + 1:] for n in range(4, len(data))]), "any", None


@case
def bytecode_all_ones_anywhere(d):
    """Numbers of 64 bits in place of every byte."""
    data = valid_bytecode()
    return many_files(d, [data[:n] + b"\0" + b"\xff" * 8 + data[n + 1:] for n in range(4, len(data))]), "any", None


# ---- .npz

TAKES = "ENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n"


def npy(dtype="<f4", shape="(4,)", data=b"\0" * 16, order="False", version=1):
    header = f"{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + size + header.encode() + data


def npz(folder, arrays, method=zipfile.ZIP_STORED):
    path = folder / "io.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in arrays.items():
            archive.writestr(name + ".npy", data)
    return path


def with_inputs(folder, path, *options):
    return ["run", hlo(folder, TAKES, name="p.hlo"), "--inputs", str(path), *options]


@case
def npz_fine(d):
    return with_inputs(d, npz(d, {"in_0": npy()})), None, None


@case
def npz_missing_array(d):
    return with_inputs(d, npz(d, {"in_1": npy()})), "TK6005", None


@case
def npz_another_type(d):
    return with_inputs(d, npz(d, {"in_0": npy("<f8", data=b"\0" * 32)})), "TK6006", None


@case
def npz_another_shape(d):
    return with_inputs(d, npz(d, {"in_0": npy(shape="(2, 2)")})), "TK6006", None


@case
def npz_strings(d):
    return with_inputs(d, npz(d, {"in_0": npy("<U1")})), "TK6009", None


@case
def npz_objects(d):
    return with_inputs(d, npz(d, {"in_0": npy("|O", data=b"cos\nsystem\n(S'true'\ntR.")})), "TK6009", None


@case
def npz_big_endian(d):
    return with_inputs(d, npz(d, {"in_0": npy(">f4")})), None, None


@case
def npz_lying_shape(d):
    return with_inputs(d, npz(d, {"in_0": npy(shape="(1152921504606846976,)")})), "TK6008", None


@case
def npz_overflowing_shape(d):
    return with_inputs(d, npz(d, {"in_0": npy(shape="(4294967296, 4294967296, 4294967296)")})), "TK6008", None


@case
def npz_negative_shape(d):
    return with_inputs(d, npz(d, {"in_0": npy(shape="(-4,)")})), "TK6008", None


@case
def npz_deep_shape(d):
    return with_inputs(d, npz(d, {"in_0": npy(shape="(" * 100_000, version=2)})), "TK6008", None


@case
def npz_short_data(d):
    return with_inputs(d, npz(d, {"in_0": npy(data=b"\0" * 15)})), "TK6008", None


@case
def npz_header_past_the_end(d):
    return with_inputs(d, npz(d, {"in_0": b"\x93NUMPY\x02\0\xff\xff\xff\xff{}"})), "TK6008", None


@case
def npz_cut(d):
    data = npz(d, {"in_0": npy()}).read_bytes()
    return with_inputs(d, write(d, "cut.npz", data[:-10])), "TK6008", None


@case
def npz_wrong_checksum(d):
    data = bytearray(npz(d, {"in_0": npy()}).read_bytes())
    data[100] ^= 255
    return with_inputs(d, write(d, "bad.npz", bytes(data))), "TK6008", None


@case
def npz_lying_size(d):
    """The central directory says that 16 EiB follow."""
    data = bytearray(npz(d, {"in_0": npy()}).read_bytes())
    at = data.index(b"PK\1\2")
    data[at + 20:at + 28] = struct.pack("<II", 0xFFFFFFFE, 0xFFFFFFFE)
    return with_inputs(d, write(d, "bad.npz", bytes(data))), "TK6008", None


@case
def npz_lying_offset(d):
    data = bytearray(npz(d, {"in_0": npy()}).read_bytes())
    at = data.index(b"PK\1\2")
    data[at + 42:at + 46] = struct.pack("<I", 0xFFFFFFF0)
    return with_inputs(d, write(d, "bad.npz", bytes(data))), "TK6008", None


@case
def npz_bomb(d):
    """A kilobyte of zip that unfolds to a megabyte of zeros for an array of four."""
    return with_inputs(d, npz(d, {"in_0": npy(data=bytes(1 << 20))}, zipfile.ZIP_DEFLATED)), "TK6008", None


@case
def npz_lying_deflate(d):
    """Deflated data that is longer than the archive says."""
    data = bytearray(npz(d, {"in_0": npy(data=bytes(1 << 20))}, zipfile.ZIP_DEFLATED).read_bytes())
    at = data.index(b"PK\1\2")
    for place in (at + 24, 22):
        data[place:place + 4] = struct.pack("<I", 200)
    return with_inputs(d, write(d, "bad.npz", bytes(data))), "TK6008", None


@case
def npz_not_deflate(d):
    path = npz(d, {"in_0": npy()}, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    compressed = zlib.compress(npy())[2:-4]
    at = data.index(compressed[:8]) if compressed[:8] in data else 38
    data[at:at + 8] = b"\xff" * 8
    return with_inputs(d, write(d, "bad.npz", bytes(data))), "TK6008", None


@case
def npz_bytes_flipped(d):
    """Every byte of an archive inverted, one at a time: an error or an array, never a signal."""
    data = npz(d, {"in_0": npy()}).read_bytes()
    program = hlo(d, TAKES, name="p.hlo")
    words = []
    for n in range(len(data)):
        words.append(["run", program, "--inputs", write(d, f"{n}.npz", data[:n] + bytes([data[n] ^ 255]) + data[n + 1:])])
    return words[::7], "any", None


@case
def npz_expected_differs(d):
    path = npz(d, {"in_0": npy(), "out_0": npy(data=struct.pack("<4f", 1, 2, 3, 4))})
    return with_inputs(d, path, "--expect", str(path)), "TK6011", None


@case
def npz_expected_missing(d):
    path = npz(d, {"in_0": npy()})
    return with_inputs(d, path, "--expect", str(path)), "TK6005", None


# ---- running

@case
def endless_memory(d):
    """Legal, and doubled sixty times: stopped by the limit, not by the machine."""
    lines = "".join(f"  v{i} = f32[{1 << i}] concatenate(v{i - 1}, v{i - 1}), dimensions={{0}}\n" for i in range(1, 56))
    return ["run", "--seed=1", hlo(d, "ENTRY e {\n  v0 = f32[1] parameter(0)\n", lines, "}\n")], "TK5002", None


@case
def probe_without_a_folder(d):
    """Where probes go is a temporary folder; there is none."""
    program = write(d, "x.mlir", "func.func @main() {\n  %0 = stablehlo.constant dense<1.0> : tensor<f32>\n",
                    '  %1 = interpreter.probe %0, probe_id = "p" : tensor<f32>\n  return\n}\n')
    return ["env", "TMPDIR=/nowhere", "run", program], "TK5008", "3:8"


# ---- the runner

EXITS = {}
for definition in (HERE.parent.parent / "src/support/errors").glob("*.def"):
    for number, kind in re.findall(r"TOK_ERROR\((\d+),\s*\w+,\s*(\w+)", definition.read_text()):
        EXITS[f"TK{number}"] = {"kMismatch": 1, "kBadInput": 2, "kUnsupported": 3, "kMachine": 4, "kOurBug": 70}[kind]


def run_one(tokamak, words):
    begin = time.monotonic()
    environment = dict(os.environ)
    if words[0] == "env":
        name, _, value = words[1].partition("=")
        environment[name] = value
        words = words[2:]
    done = subprocess.run([tokamak, *words], capture_output=True, preexec_fn=limit, timeout=600, check=False, env=environment)
    return done, time.monotonic() - begin


def judge(done, code, place):
    """What is wrong; nothing if all is well."""
    text = done.stderr.decode(errors="replace")
    errors = re.findall(r"^error\[(TK\d+)\]", text, re.M)
    said = f"exit {done.returncode}, {text[:600]!r}"
    if done.returncode < 0 or done.returncode in (70, 134, 137, 139):
        return f"died: {said}"
    if len(text) > 20_000 * max(1, len(errors)):
        return f"{len(text)} bytes of errors"
    # Reading and inferring know a place, always; files and archives have none.
    places = re.findall(r"^  --> .*:(\d+:\d+|.byte \d+)$", text, re.M)
    placed = [e for e in errors if e[2] in "125" and e not in ("TK1005", "TK5002", "TK5009")]
    if len(places) < len(placed):
        return f"an error without its place: {said}"
    if code == "any":
        return None if (done.returncode == 0) == (not errors) else said
    if code is None:
        return None if done.returncode == 0 or (errors and done.returncode == max(EXITS[e] for e in errors)) else said
    if not errors or not all(e.startswith(code) for e in errors):
        return f"expected {code}, got {said}"
    if done.returncode != max(EXITS[e] for e in errors):
        return f"expected another exit code, got {said}"
    if place is not None and places != [place]:
        return f"expected it at {place}, got {said}"
    return None


def main():
    tokamak = os.path.abspath(sys.argv[1])
    chosen = sys.argv[2:] or list(CASES)
    failed = 0
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="tokamak-errors-") as folder:
            words, code, place = CASES[name](Path(folder))
            runs = words if isinstance(words[0], list) else [words]
            for one in runs:
                done, seconds = run_one(tokamak, one)
                fault = judge(done, code, place)
                if fault is not None:
                    failed += 1
                    print(f"FAILED {name}: {fault} ({seconds:.1f} s)", flush=True)
                    break
    print(f"tally: {len(chosen) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
