"""Nested a hundred thousand times."""
from made.case import DEEP, MANY, case, hlo, write


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
    """Like deep_aliases in reverse: each is read after the one it refers to."""
    lines = "".join(f"#a{i} = [#a{i - 1}]\n" for i in range(1, DEEP))
    return ["check", write(d, "x.mlir", "#a0 = []\n", lines, f"module attributes {{a = #a{DEEP - 1}}} {{}}\n")], "TK1003", None


@case
def deep_type_aliases_in_order(d):
    lines = "".join(f"!t{i} = tuple<!t{i - 1}>\n" for i in range(1, DEEP))
    return ["check", write(d, "x.mlir", "!t0 = tuple<tensor<i1>>\n", lines, f"func.func @main(%x: !t{DEEP - 1}) {{\n  return\n}}\n")], "TK1003", None


@case
def deep_tuples(d):
    """Every instruction is a tuple of the previous one; no shape is written."""
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
    """A valid program: a hundred thousand computations, each calling the previous one."""
    parts = ["f0 { ROOT a = s32[] parameter(0) }\n"]
    parts += [f"f{i} {{ a = s32[] parameter(0) ROOT b = s32[] call(a), to_apply=f{i - 1} }}\n" for i in range(1, DEEP)]
    return ["check", hlo(d, "".join(parts), f"ENTRY e {{ a = s32[] parameter(0) ROOT b = s32[] call(a), to_apply=f{DEEP - 1} }}\n")], None, None


@case
def deep_calls_run(d):
    words, _, _ = deep_calls(d)
    return ["run", "--seed=1", "--backend=interp", words[1]], "TK5003", None


@case
def long_call_cycle(d):
    parts = [f"f{i} {{ a = s32[] parameter(0) ROOT b = s32[] call(a), to_apply=f{(i + 1) % DEEP} }}\n" for i in range(DEEP)]
    return ["check", hlo(d, "".join(parts), "ENTRY e { a = s32[] parameter(0) ROOT b = s32[] call(a), to_apply=f0 }\n")], "TK2007", None


@case
def long_chain(d):
    """A valid program: a million instructions, each using the previous one."""
    return ["check", hlo(d, "ENTRY e {\n  v0 = f32[] parameter(0)\n",
                         "".join(f"  v{i} = f32[] negate(v{i - 1})\n" for i in range(1, MANY)), "}\n")], None, None
