"""tools/jax_tests.py counts every test under its name, whatever its outcome."""

import json

from conftest import ROOT, script

TESTS = """
import os, time, unittest
import jax, numpy as np
ours = "tokamak" in os.environ["JAX_PLATFORMS"]

class A(unittest.TestCase):
    def test_adds(self): np.testing.assert_array_equal(jax.jit(lambda x: x + 1)(np.arange(3)), [1, 2, 3])
    def test_crashes(self): ours and os.abort()
    def test_fails_everywhere(self): self.fail("on the CPU too")
    def test_hangs(self): ours and time.sleep(1000)
    def test_subtest(self):
        for i in range(3):
            with self.subTest(i=i): self.assertTrue(i == 1 or not ours)
    def test_then(self): pass

class B(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if ours: raise RuntimeError("no set up")
    def test_b(self): pass
"""


def test_every_end_of_a_test_is_counted(tmp_path):
    (tmp_path / "odd_test.py").write_text(TESTS)
    done = script(ROOT / "tools/jax_tests.py", "tests", tmp_path, "--only", "odd_test", "-j", 2, "--out", tmp_path / "out",
                  "--case-seconds", 10, timeout=300)  # fmt: skip
    results = json.loads((tmp_path / "out/tests.json").read_text())["results"]
    outcomes = {name.split("::")[-1]: result["outcome"] for name, result in results["tokamak"].items()}
    assert outcomes == {"test_adds": "passed", "test_crashes": "crash", "test_fails_everywhere": "failed",
                        "test_hangs": "hang", "test_subtest": "failed", "test_then": "passed", "test_b": "error"}  # fmt: skip
    assert done.returncode == 1
    assert "JAX's tests: 2 of 6" in done.stdout
    for text in ("crash  odd_test::A::test_crashes", "hang  odd_test::A::test_hangs", "test_b: RuntimeError: no set up"):
        assert text in done.stdout
