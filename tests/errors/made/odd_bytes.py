"""Lines of a gigabyte, bytes that are not text, unreadable files."""
import os

from made.case import case, hlo, write


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
