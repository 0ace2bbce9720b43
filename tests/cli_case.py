"""The base of tests of the command line: a temporary folder and runs of `tokamak`, whose path is the first argument of the script."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy here (scripts/bootstrap makes a .venv that has it)")
    sys.exit(77)

TOKAMAK = sys.argv.pop(1) if len(sys.argv) > 1 else "build/bin/tokamak"

DOUBLE = """HloModule m
ENTRY main {
  x = TYPE parameter(0)
  ROOT y = TYPE add(x, x)
}
"""
# Two kernels with a host step between them, each with its source line.
STEPS = """HloModule m
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[4,8] parameter(0)
  e = f32[4,8] exponential(x), metadata={op_name="jit(f)/exp" source_file="model.py" source_line=11}
  y = f32[4,8] add(e, e), metadata={op_name="jit(f)/add" source_file="model.py" source_line=12}
  t = f32[4,8] all-reduce(y), replica_groups={}, to_apply=sum, metadata={op_name="jit(f)/psum" source_file="model.py" source_line=13}
  r = f32[4,8] negate(t), metadata={op_name="jit(f)/neg" source_file="model.py" source_line=14}
  z = f32[] constant(0)
  ROOT s = f32[4] reduce(r, z), dimensions={1}, to_apply=sum, metadata={op_name="jit(f)/sum" source_file="model.py" source_line=15}
}
"""


class CliCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return str(Path(self.folder.name) / name)

    def write(self, name, text):
        Path(self.path(name)).write_text(text)
        return self.path(name)

    def tokamak(self, *words, expect=0, **env):
        done = subprocess.run([TOKAMAK, *words], capture_output=True, text=True, check=False, timeout=120,
                              env={**os.environ, **env})
        if expect is not None:
            self.assertEqual(done.returncode, expect, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def run_array(self, program, array, save=np.savez):
        save(self.path("in.npz"), in_0=array)
        file = self.write("p.hlo", program)
        self.tokamak("run", file, "--inputs", self.path("in.npz"), "--outputs", self.path("out.npz"))
        return np.load(self.path("out.npz"))["out_0"]
