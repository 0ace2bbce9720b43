"""A valid bytecode file with one change, at every position."""
from pathlib import Path

from made.case import case, write

ERRORS = Path(__file__).resolve().parent.parent


def valid_bytecode():
    lines = (ERRORS / "bytecode/valid.bytes").read_text().splitlines()
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
    """64-bit numbers in place of every byte."""
    data = valid_bytecode()
    return many_files(d, [data[:n] + b"\0" + b"\xff" * 8 + data[n + 1:] for n in range(4, len(data))]), "any", None
