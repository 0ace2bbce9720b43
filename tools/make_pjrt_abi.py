#!/usr/bin/env python3
"""Writes src/pjrt/abi.def from pjrt_abi.json, the measured tables of the PJRT C ABI.

    tools/make_pjrt_abi.py pjrt_abi.json    # writes the table
    tools/make_pjrt_abi.py --check          # exit 1 if it differs, 77 without the json, which is in facts/ next to the corpora
"""
import argparse
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "src/pjrt/abi.def"

# Ours to define: only their first field is specified.
OWN = {"PJRT_Error", "PJRT_Memory"}
OPAQUE = ["PJRT_Client", "PJRT_Device", "PJRT_DeviceDescription", "PJRT_TopologyDescription", "PJRT_Executable",
          "PJRT_LoadedExecutable", "PJRT_Buffer", "PJRT_Event", "PJRT_ExecuteContext", "PJRT_SerializedExecutable",
          "PJRT_SerializedTopology", "PJRT_AsyncHostToDeviceTransferManager", "PJRT_CopyToDeviceStream",
          "PJRT_SerializedCompileOptions", "PJRT_DeviceAssignmentSerialized", "PJRT_Device_Attributes",
          "PJRT_AsyncTrackingEvent", "PJRT_FulfillAliasBufferCallback", "PJRT_MultiSlice_Config",
          "PJRT_Layouts_MemoryLayout", "PJRT_Layouts_SerializedLayout"]
EXTENSIONS = ["xla/pjrt/c/pjrt_c_api_layouts_extension.h", "xla/pjrt/c/pjrt_c_api_shardings_extension.h"]
HEADER = """\
// Made by tools/make_pjrt_abi.py from the measured tables of the PJRT C ABI {version}. Do not edit.
//
// TOK_PJRT_DECLARE(name)            a struct to come, or an opaque handle
// TOK_PJRT_ENUM(name), TOK_PJRT_VALUE(name, value), TOK_PJRT_ENUM_END()
// TOK_PJRT_TYPEDEF(name, type)      a function pointer
// TOK_PJRT_STRUCT(name, size, struct_size), TOK_PJRT_FIELD(struct, name, offset, type), TOK_PJRT_STRUCT_END()
// TOK_PJRT_UNION(), TOK_PJRT_UNION_END()
// TOK_PJRT_FUNCTION(name, offset, returned, optional)  a slot of PJRT_Api; optional: the measured
//                                   outcome of answering UNIMPLEMENTED is that JAX goes on
"""


def default_macros():
    names = {"DECLARE": "name", "ENUM": "name", "VALUE": "name, value", "ENUM_END": "", "TYPEDEF": "name, type",
             "STRUCT": "name, size, struct_size", "FIELD": "struct, name, offset, type", "STRUCT_END": "",
             "UNION": "", "UNION_END": "", "FUNCTION": "name, offset, returned, optional"}
    lines = []
    for name, args in names.items():
        args = args.replace("type", "...") if name in ("FIELD", "TYPEDEF") else args
        lines += [f"#ifndef TOK_PJRT_{name}", f"#define TOK_PJRT_{name}({args})", "#endif"]
    return lines, [f"#undef TOK_PJRT_{name}" for name in names]


def field_type(field):
    """An extension's functions are given by their names."""
    if field[1] == field[0] + " *":
        return f"PJRT_Error *(*)({field[0]}_Args *)"
    return field[1]


def struct_rows(name, struct):
    rows = [f"TOK_PJRT_STRUCT({name}, {struct['size']}, {struct['struct_size']})"]
    in_union = False
    for field in struct["fields"]:
        united = "anonymous_union" in field[4:]
        if united != in_union:
            rows.append("TOK_PJRT_UNION()" if united else "TOK_PJRT_UNION_END()")
            in_union = united
        rows.append(f"TOK_PJRT_FIELD({name}, {field[0]}, {field[2]}, {field_type(field)})")
    if in_union:
        rows.append("TOK_PJRT_UNION_END()")
    return rows + ["TOK_PJRT_STRUCT_END()"]


def fields_use(structs, typedefs):
    """The names that the fields of these structs and the function pointers among them use."""
    used = set()
    open_types = [field_type(field) for struct in structs.values() for field in struct["fields"]]
    while open_types:
        for name in set(re.findall(r"PJRT_\w+", open_types.pop())) - used:
            used.add(name)
            open_types.append(typedefs.get(name, ""))
    return used


def table(abi):
    structs = {name: s for name, s in abi["structs"].items() if name not in OWN}
    for header in EXTENSIONS:
        structs.update(abi["extension_structs"][header])
    used = fields_use(structs, abi["function_pointer_typedefs"])
    version = f"{abi['api_version']['major']}.{abi['api_version']['minor']}"
    begin, end = default_macros()
    lines = [HEADER.format(version=version), *begin, ""]
    lines += [f"TOK_PJRT_DECLARE({name})" for name in [*OPAQUE, *sorted(OWN), *structs]] + [""]
    for name, values in abi["enums"].items():
        if name not in used:
            continue
        lines.append(f"TOK_PJRT_ENUM({name})")
        lines += [f"TOK_PJRT_VALUE({key}, {value})" for key, value in values.items()]
        lines.append("TOK_PJRT_ENUM_END()")
    lines.append("")
    for name, kind in abi["function_pointer_typedefs"].items():
        if name in used:
            lines.append(f"TOK_PJRT_TYPEDEF({name}, {kind})")
    lines.append("")
    for name, struct in structs.items():
        lines += struct_rows(name, struct)
    lines.append("")
    for _, name, offset, args, returned, _, unimplemented, _ in abi["api_table"]["functions"]:
        assert args == name + "_Args", name
        optional = int(unimplemented in ("ok", "untested"))
        lines.append(f"TOK_PJRT_FUNCTION({name}, {offset}, {returned}, {optional})")
    return "\n".join([*lines, "", *end, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", type=pathlib.Path, nargs="?", default=pathlib.Path(os.environ.get("TOKAMAK_CORPUS") or os.devnull).parent / "facts/pjrt_abi.json")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if not args.json.exists():
        print("skipped: there are no corpora, and no facts/pjrt_abi.json beside them (TOKAMAK_CORPUS says where they are)")
        return 77
    made = table(json.loads(args.json.read_text()))
    if not args.check:
        OUT.write_text(made)
        return 0
    if OUT.read_text() != made:
        print(f"{OUT} is not what {args.json} gives: run tools/make_pjrt_abi.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
