"""Programs that are well formed but cannot be run."""
from made.case import case, hlo, write


@case
def endless_memory(d):
    """Valid, but doubled sixty times: stopped by the limit, not by the machine."""
    lines = "".join(f"  v{i} = f32[{1 << i}] concatenate(v{i - 1}, v{i - 1}), dimensions={{0}}\n" for i in range(1, 56))
    return ["run", "--seed=1", "--backend=interp", hlo(d, "ENTRY e {\n  v0 = f32[1] parameter(0)\n", lines, "}\n")], "TK5002", None


@case
def probe_without_a_folder(d):
    """Probes go to a temporary folder, and there is none."""
    program = write(d, "x.mlir", "func.func @main() {\n  %0 = stablehlo.constant dense<1.0> : tensor<f32>\n",
                    '  %1 = interpreter.probe %0, probe_id = "p" : tensor<f32>\n  return\n}\n')
    return ["env", "TMPDIR=/nowhere", "run", program], "TK5008", "3:8"
