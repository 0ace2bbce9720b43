"""A million elements of one kind, or an input that expands to that."""
from made.case import MANY, case, hlo, write


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
    """One name, a million times: detected without pairwise comparison."""
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
def many_operands(d):
    """A hundred thousand programs in one file: each error has its own line, and lines are not recounted for each."""
    return ["check", hlo(d, (100_000, "// -----\nHloModule\n"))], "TK1301", None


@case
def many_splats(d):
    """2^57 elements each, which must not be allocated."""
    return ["check", write(d, "x.mlir", "func.func @main() {\n",
                           "".join(f"  %{i} = stablehlo.constant dense<1.0> : tensor<144115188075855872xf32>\n" for i in range(10_000)), "  return\n}\n")], None, None


@case
def billion_laughs(d):
    """Aliases of lists of aliases: a few lines expand to 10^30 attributes."""
    lines = "".join(f"#a{i} = [{', '.join([f'#a{i - 1}'] * 10)}]\n" for i in range(1, 30))
    return ["check", write(d, "x.mlir", "#a0 = [1]\n", lines, "module attributes {a = #a29} {}\n")], "TK1004", None


@case
def nested_tuple_types(d):
    """Types that nest by alias: 2^60 leaves."""
    lines = "".join(f"!t{i} = tuple<!t{i - 1}, !t{i - 1}>\n" for i in range(1, 60))
    return ["check", write(d, "x.mlir", "!t0 = tuple<tensor<i1>>\n", lines, "func.func @main(%x: !t59) {\n  return\n}\n")], "TK1004", None


@case
def doubling_tuples(d):
    """Every instruction is a tuple of the previous one twice: 2^100 leaves in 100 lines."""
    lines = "".join(f"  v{i} = tuple(v{i - 1}, v{i - 1})\n" for i in range(1, 100))
    return ["check", hlo(d, "ENTRY e {\n  v0 = f32[] parameter(0)\n", lines, "}\n")], "TK2010", "24:9"
