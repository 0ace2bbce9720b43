#!/usr/bin/env python3
"""The command line from the user's side: exit codes, .npz files, JSON, help, reduce.

    tests/cli_test.py build/bin/tokamak
"""
import json
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import numpy as np
from cli_case import CliCase, DOUBLE, STEPS, TOKAMAK

SAME = """HloModule m
ENTRY main {
  ROOT x = TYPE parameter(0)
}
"""


class CliTest(CliCase):
    def test_help(self):
        self.assertIn("Examples:", self.tokamak("run", "--help").stdout)
        for command in ("bench", "bisect", "calibrate", "check", "convert", "explain", "kernels", "lint", "ops", "opt", "reduce"):
            self.assertIn("Examples:", self.tokamak(command, "--help").stdout)
        self.assertIn("reduce", self.tokamak("--help").stdout)
        self.assertRegex(self.tokamak("--version").stdout, r"^tokamak \d+\.\d+\.\d+\n$")

    def test_help_names_a_value_once(self):
        for command in ("run", "lint", "explain", "kernels", "bench", "bisect", "calibrate"):
            text = self.tokamak(command, "--help").stdout
            self.assertNotIn(":{", text)  # TEXT:{cpu,cuda}
            self.assertNotIn("INT:INT", text)
            self.assertNotIn("FLOAT:FLOAT", text)

    def test_help_fits_a_line(self):
        for command in ("", "bench", "bisect", "calibrate", "check", "convert", "explain", "kernels", "lint", "ops", "opt", "reduce", "run"):
            text = self.tokamak(*command.split(), "--help").stdout
            self.assertEqual([line for line in text.splitlines() if len(line) > 110], [])
            self.assertIn(f"Usage: tokamak {command}".rstrip(), text)
            self.assertNotIn("TEXT", text)

    def test_arrays_that_do_not_match_the_program(self):
        file = self.write("double.hlo", DOUBLE.replace("TYPE", "f32[3]"))
        three = np.zeros(3, np.float32)

        def rejected(**arrays):
            np.savez(self.path("in.npz"), **arrays)
            return self.tokamak("run", file, "--inputs", self.path("in.npz"), expect=2).stderr

        self.assertIn("array 'in_0' is f32[4], but the program has f32[3]", rejected(in_0=np.zeros(4, np.float32)))
        self.assertIn("array 'in_0' is f64[3], but the program has f32[3]", rejected(in_0=np.zeros(3)))
        self.assertIn("element type '|O', which no program has", rejected(in_0=np.array([{}], dtype=object)))
        self.assertIn("there is no array 'in_0'", rejected(arr_0=three, arr_1=three))
        self.assertIn("note: arrays of the file: arr_0, arr_1\nnote: np.savez(file, in_0=x", rejected(arr_0=three, arr_1=three))
        whole = Path(self.path("in.npz"))
        whole.write_bytes(whole.read_bytes()[:-30])
        self.assertIn("is not a .npz file, or is truncated", self.tokamak("run", file, "--inputs", str(whole), expect=2).stderr)

    def test_an_error_is_not_followed_by_a_count_of_checks(self):
        broken = self.tokamak("run", self.write("broken.hlo", "ENTRY e {"), expect=2)
        self.assertEqual(broken.stdout, "")

    def test_calibrate_does_not_measure_for_nothing(self):
        rejected = self.tokamak("calibrate", "-o", self.path("no/such/folder.json"), expect=4)
        self.assertIn("TK6010", rejected.stderr)
        self.assertNotIn("launches", rejected.stderr)

    def test_variables_with_invalid_values(self):
        file = self.write("double.hlo", DOUBLE.replace("TYPE", "f32[3]"))
        for name, value, text in [
            ("TOKAMAK_THREADS", "many", "TOKAMAK_THREADS: 'many' is not a number of threads, 1 or more"),
            ("TOKAMAK_THREADS", "0", "TOKAMAK_THREADS: '0' is not a number of threads"),
            ("TOKAMAK_DEBUG", "explian", "TOKAMAK_DEBUG: 'explian' is none of explain and decisions; did you mean 'explain'?"),
            ("TOKAMAK_CHECK", "kernel", "TOKAMAK_CHECK: 'kernel' is none of kernels, memory,"),
            ("TOKAMAK_BLAS", "/no/such/library.so", "TOKAMAK_BLAS: cannot read '/no/such/library.so'"),
        ]:
            rejected = self.tokamak("run", file, "--seed", "1", "--backend", "sim", expect=2, **{name: value})
            self.assertIn("TK6107", rejected.stderr)
            self.assertIn(text, rejected.stderr)

    def test_a_missing_gpu(self):
        file = self.write("double.hlo", DOUBLE.replace("TYPE", "f32[3]"))
        missing = self.tokamak("run", file, "--seed", "1", "--backend", "cuda", expect=None)
        if missing.returncode not in (0, 3):  # a GPU; built without CUDA
            self.assertEqual(missing.returncode, 4)
            self.assertRegex(missing.stderr, r"TK420[12]")
            if "TK4201" in missing.stderr:
                self.assertIn("use the backend cpu", missing.stderr)

    def test_usage(self):
        self.assertIn("TK6001", self.tokamak(expect=2).stderr)
        self.assertIn("TK6001", self.tokamak("fly", expect=2).stderr)
        self.assertIn("TK1005", self.tokamak("check", self.path("nothing"), expect=2).stderr)

    def test_arrays_travel(self):
        for dtype, name in [("f4", "f32"), ("f8", "f64"), ("f2", "f16"), ("i4", "s32"), ("u8", "u64"), ("c8", "c64"), ("c16", "c128"), ("i1", "s8")]:
            array = np.arange(6).astype(dtype).reshape(2, 3)
            for save in (np.savez, np.savez_compressed):
                got = self.run_array(DOUBLE.replace("TYPE", f"{name}[2,3]"), array, save)
                self.assertEqual(got.dtype, array.dtype)
                np.testing.assert_array_equal(got, array + array)

    def test_orders(self):
        array = np.arange(24, dtype="f4").reshape(2, 3, 4)
        for other in (np.asfortranarray(array), array.astype(">f4")):
            got = self.run_array(SAME.replace("TYPE", "f32[2,3,4]"), other)
            np.testing.assert_array_equal(got, array)

    def test_edges(self):
        self.assertEqual(self.run_array(DOUBLE.replace("TYPE", "f32[]"), np.float32(4)), 8)
        self.assertEqual(self.run_array(SAME.replace("TYPE", "f32[0,3]"), np.zeros((0, 3), "f4")).shape, (0, 3))
        got = self.run_array(SAME.replace("TYPE", "pred[3]"), np.array([True, False, True]))
        np.testing.assert_array_equal(got, [True, False, True])

    def test_bits(self):
        bf16 = np.array([0x3F80, 0x4000, 0xC0A0], "u2")  # 1, 2, -5
        np.testing.assert_array_equal(self.run_array(DOUBLE.replace("TYPE", "bf16[3]"), bf16), [0x4000, 0x4080, 0xC120])
        s4 = np.array([1, 15, 7], "u1")  # 1, -1, 7
        np.testing.assert_array_equal(self.run_array(DOUBLE.replace("TYPE", "s4[3]"), s4), [2, 14, 14])
        f8 = np.array([0x38, 0x40], "u1")  # 1, 2
        np.testing.assert_array_equal(self.run_array(DOUBLE.replace("TYPE", "f8e4m3fn[2]"), f8), [0x40, 0x48])

    def test_wrong_inputs(self):
        file = self.write("p.hlo", SAME.replace("TYPE", "f32[3]"))
        np.savez(self.path("in.npz"), in_0=np.zeros(4, "f4"))
        self.assertIn("TK6006", self.tokamak("run", file, "--inputs", self.path("in.npz"), expect=2).stderr)
        np.savez(self.path("in.npz"), in_1=np.zeros(3, "f4"))
        self.assertIn("in_0", self.tokamak("run", file, "--inputs", self.path("in.npz"), expect=2).stderr)
        self.assertIn("in_0", self.tokamak("run", file, expect=2).stderr)
        np.savez(self.path("in.npz"), in_0=np.array(["a", "b", "c"]))
        self.assertIn("TK6009", self.tokamak("run", file, "--inputs", self.path("in.npz"), expect=2).stderr)
        file = self.write("q.hlo", SAME.replace("TYPE", "s4[3]"))
        np.savez(self.path("in.npz"), in_0=np.array([1, 2, 16], "u1"))
        self.assertIn("TK6006", self.tokamak("run", file, "--inputs", self.path("in.npz"), expect=2).stderr)

    def test_corrupted_archives(self):
        file = self.write("p.hlo", SAME.replace("TYPE", "f32[64]"))
        for save in (np.savez, np.savez_compressed):
            save(self.path("in.npz"), in_0=np.arange(64, dtype="f4"))
            data = Path(self.path("in.npz")).read_bytes()
            for size in range(0, len(data), 7):
                Path(self.path("cut.npz")).write_bytes(data[:size])
                done = self.tokamak("run", file, "--inputs", self.path("cut.npz"), expect=2)
                self.assertIn("TK60", done.stderr)
            for at in range(0, len(data), 5):
                Path(self.path("flip.npz")).write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
                words = ["--inputs", self.path("flip.npz"), "--outputs", self.path("out.npz")]
                done = subprocess.run([TOKAMAK, "run", file, *words], capture_output=True, check=False)
                self.assertIn(done.returncode, (0, 2))
                if done.returncode == 0:  # an unused byte, such as a date
                    np.testing.assert_array_equal(np.load(self.path("out.npz"))["out_0"], np.arange(64, dtype="f4"))

    def test_expect(self):
        file = self.write("p.hlo", SAME.replace("TYPE", "f32[3]"))
        given = np.array([1, np.nan, np.inf], "f4")
        np.savez(self.path("io.npz"), in_0=given, out_0=given)
        self.tokamak("run", file, "--inputs", self.path("io.npz"), "--expect", self.path("io.npz"))
        np.savez(self.path("io.npz"), in_0=given, out_0=np.array([1.0003, np.nan, np.inf], "f4"))
        words = ["run", file, "--inputs", self.path("io.npz"), "--expect", self.path("io.npz")]
        self.assertIn("TK6011", self.tokamak(*words, expect=1).stderr)
        self.tokamak(*words, "--rtol", "1e-3")
        self.tokamak(*words, "--ulp", "3000")
        self.tokamak(*words, "--ulp", "2", expect=1)
        np.savez(self.path("io.npz"), in_0=given, out_0=np.zeros(4, "f4"))
        self.tokamak(*words, expect=1)
        np.savez(self.path("io.npz"), in_0=given, out_0=given, out_1=given)
        self.tokamak(*words, expect=1)

    def test_second_opinions(self):
        words = ["--inputs", self.path("io.npz"), "--expect", self.path("io.npz")]
        file = self.write("flush.hlo", "ENTRY e {\n x = f32[2] parameter(0)\n h = f32[2] constant({0.5, 1})\n ROOT y = f32[2] divide(h, x)\n}\n")
        np.savez(self.path("io.npz"), in_0=np.array([1e-38, 2], "f4"), out_0=np.array([np.inf, 0.5], "f4"))
        self.assertIn("note: out_0 agrees if subnormal", self.tokamak("run", file, *words).stdout)
        self.tokamak("run", file, *words, "--strict", expect=1)
        self.tokamak("run", file, *words, "--strict", "--flush-subnormals")
        np.savez(self.path("io.npz"), in_0=np.array([1e-38, 2], "f4"), out_0=np.array([np.inf, 0.6], "f4"))
        self.tokamak("run", file, *words, expect=1)
        file = self.write("oracle.hlo", "ENTRY e {\n x = f32[] parameter(0)\n one = f32[] constant(1)\n y = f32[] add(x, one)\n ROOT z = f32[] subtract(y, one)\n}\n")
        np.savez(self.path("io.npz"), in_0=np.float32(1e-9), out_0=np.float32(1e-9))
        self.assertIn("rounded at the end", self.tokamak("run", file, *words, "--rtol", "1e-4", "--atol", "0").stdout)

    def test_results_with_bounds(self):
        file = self.write("b.hlo", "ENTRY e {\n x = f32[2,2] parameter(0)\n n = s32[] constant(1)\n ROOT y = f32[2,<=2] set-dimension-size(x, n), dimensions={1}\n}\n")
        given = np.array([[1, 2], [3, 4]], "f4")
        words = ["run", file, "--inputs", self.path("io.npz"), "--expect", self.path("io.npz")]
        np.savez(self.path("io.npz"), in_0=given, out_0=np.array([[1, 3], [7e30, np.nan]], "f4"))
        self.tokamak(*words)  # the first two elements exist, whatever follows them
        np.savez(self.path("io.npz"), in_0=given, out_0=np.array([[1, 2], [0, 0]], "f4"))
        self.tokamak(*words, expect=1)

    def test_json(self):
        file = self.write("p.hlo", SAME.replace("TYPE", "f32[3]"))
        report = json.loads(self.tokamak("check", file, "--json", "--hash", "--histogram").stdout)
        self.assertEqual(report["programs"][0]["ops"], {"parameter": 1})
        bad = self.write("bad.hlo", DOUBLE.replace("add", "sinus").replace("TYPE", "f32[3]"))
        report = json.loads(self.tokamak("check", bad, "--json", expect=2).stdout)
        error = report["programs"][0]["errors"][0]
        self.assertEqual((error["code"], error["line"]), ("TK1302", 4))
        self.assertEqual(len(json.loads(self.tokamak("ops", "--json").stdout)) > 100, True)

    def test_several_files(self):
        good = self.write("good.hlo", SAME.replace("TYPE", "f32[3]"))
        bad = self.write("bad.hlo", DOUBLE.replace("add", "sinus").replace("TYPE", "f32[3]"))
        done = self.tokamak("check", bad, good, expect=2)
        self.assertIn("good.hlo: HLO text", done.stdout)

    def test_large_array_fails_well(self):
        file = self.write("p.hlo", SAME.replace("TYPE", "f32[1099511627776]"))
        self.assertIn("TK5002", self.tokamak("run", file, "--seed", "1", expect=4).stderr)

    def test_too_large_for_the_machine(self):
        program = """less {
 a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT l = pred[] compare(a, b), direction=LT
}
ENTRY e {
 p = f32[] parameter(0)
 x = f32[1099511627776] broadcast(p), dimensions={}
 i = f32[1099511627776] iota(), iota_dimension=0
 y = f32[1099511627776] multiply(x, i)
 s = f32[1099511627776] sort(y), dimensions={0}, to_apply=less
 ROOT r = f32[4] slice(s), slice={[5:9]}
}
"""
        file = self.write("huge.hlo", program)
        said = self.tokamak("run", file, "--seed", "1", "--backend", "sim", expect=4).stderr
        self.assertRegex(said, r"needs \d{13,} bytes for its values, and \d+ for arguments and results; the machine has \d+")

    def test_convert(self):
        file = self.write("p.hlo", DOUBLE.replace("TYPE", "f32[3]"))
        self.tokamak("convert", file, "--to", "mlir", "-o", self.path("p.mlir"))
        self.tokamak("convert", self.path("p.mlir"), "--to", "hlo", "-o", self.path("q.hlo"))
        hashes = set()
        for name in ("p.hlo", "p.mlir", "q.hlo"):
            hashes.add(json.loads(self.tokamak("check", self.path(name), "--json", "--hash").stdout)["programs"][0]["hash"])
        self.assertEqual(len(hashes), 1)
        self.tokamak("convert", file, "--to", "fortran", expect=2)

    def test_strict(self):
        file = self.write("steps.hlo", STEPS)
        words = ("run", file, "--seed", "1")
        self.tokamak(*words, "--strict", "--backend", "interp")
        self.tokamak(*words, "--backend", "sim")
        for rejected in ((*words, "--strict", "--backend", "sim"), ("kernels", file, "--strict"), ("explain", file, "--strict")):
            text = self.tokamak(*rejected, expect=3).stderr
            for part in ("TK4005", "all-reduce: 't' has no kernel", "steps.hlo:7", "model.py:13"):
                self.assertIn(part, text)
        self.tokamak("run", self.write("ok.hlo", DOUBLE.replace("TYPE", "f32[3]")), "--seed", "1", "--strict", "--backend", "sim")

    def test_run_batch(self):
        file = self.write("double.hlo", DOUBLE.replace("TYPE", "f32[3]"))
        entries = []
        for number in range(2):
            inputs, outputs = self.path(f"in{number}.npz"), self.path(f"out{number}.npz")
            np.savez(inputs, in_0=np.full(3, number + 1, np.float32))
            entries.append({"file": file, "inputs": inputs, "outputs": outputs})
        entries.insert(1, {"file": file, "inputs": self.path("none.npz")})
        listed = self.write("list.json", json.dumps(entries))
        done = self.tokamak("run", "--batch", listed, "--json", expect=None)
        exits = [json.loads(line)["exit"] for line in done.stdout.splitlines()]
        self.assertEqual((exits[0], exits[1] != 0, exits[2]), (0, True, 0))
        for number, entry in enumerate((entries[0], entries[2])):
            self.assertEqual(np.load(entry["outputs"])["out_0"].tolist(), [2 * number + 2] * 3)
        self.assertIn("not a list of", self.tokamak("run", "--batch", self.write("bad.json", "[1]"), expect=None).stderr)

    def test_bench(self):
        file = self.write("steps.hlo", STEPS)
        explained = json.loads(self.tokamak("bench", file, "--backend", "cpu", "--fusion", "none,search", "--seconds", "0.05", "--json").stdout)
        self.assertEqual([mode["fusion"] for mode in explained["fusion_modes"]], ["none", "search"])
        self.assertLess(explained["fusion_modes"][1]["launches"], explained["fusion_modes"][0]["launches"])
        for mode in explained["fusion_modes"]:
            self.assertGreaterEqual(mode["repetitions"], 3)
            self.assertTrue(0 < mode["least_us"] <= mode["median_us"] <= mode["most_us"], mode)
            self.assertGreater(mode["compile_ms"], 0)
        text = self.tokamak("bench", file, "--backend", "cpu", "--seconds", "0.05").stdout
        for part in ("none", "rules", "greedy", "search", "interleaved repetitions", "compiling by search"):  # takes or saves: a matter of time
            self.assertIn(part, text)
        self.assertIn("TK6001", self.tokamak("bench", file, "--fusion", "all", expect=2).stderr)
        counted = self.tokamak("bench", file, "--backend", "cpu", "--fusion", "none,search", "--seconds", "0.05", "--json", "--counters", expect=None)
        if counted.returncode == 4:  # no NVRTC here, or no CUDA backend
            self.assertRegex(counted.stderr, "TK4122|TK6003")
            return
        counters = json.loads(counted.stdout)["counters"]
        self.assertGreater(len(counters["none"]), len(counters["search"]))
        kernels = [step for mode in counters.values() for step in mode if step["generator"] in ("loop", "rows")]
        self.assertGreater(len(kernels), 2)
        for kernel in kernels:
            self.assertGreater(kernel["registers"], 0, kernel)
            self.assertTrue(0 < kernel["occupancy"] <= 1, kernel)

    def test_check_kernels(self):
        words = ("run", self.write("steps.hlo", STEPS), "--seed", "1", "--backend", "sim")
        clean = self.tokamak(*words, TOKAMAK_CHECK="kernels,memory")
        self.assertEqual(clean.stderr, "")
        self.assertEqual(clean.stdout, self.tokamak(*words).stdout)
        self.tokamak(*words, "--corrupt-kernel", "0")  # not checked
        for kernel, parts in ((0, ("kernel 'y'", "y (add, f32[4,8])", "1 of 32 elements", "tolerance", "model.py:12")),
                              (1, ("kernel 's'", "s (reduce, f32[4])", "1 of 4 elements", "model.py:15"))):
            text = self.tokamak(*words, "--corrupt-kernel", str(kernel), TOKAMAK_CHECK="kernels", expect=70).stderr
            for part in ("TK4006", *parts):
                self.assertIn(part, text)
        self.assertIn("TK6107", self.tokamak(*words, TOKAMAK_CHECK="kernel", expect=2).stderr)

    def test_codegen_fallbacks(self):
        """LLVM crashes on a kernel, aborts, gives up or hangs: the values are correct, and the reason is reported."""
        words = ("run", self.write("steps.hlo", STEPS), "--seed", "1", "--backend", "cpu")
        right = self.tokamak(*words)
        self.assertEqual(right.stderr, "")
        for fault, parts in (("crash", ("SIGSEGV", "compiled by another instruction selector")),
                             ("abort:2", ("SIGABRT", "compiled without optimization")),
                             ("fatal:3", ("llvm: planted", "interpreted")),
                             ("endless", ("0.5 s of processor time are used up", "compiled by another instruction selector"))):
            with self.subTest(fault):
                done = self.tokamak(*words, TOKAMAK_CHECK="codegen-" + fault)
                self.assertEqual(done.stdout, right.stdout)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                for part in ("warning: kernel y: code generation was abandoned: ", *parts):
                    self.assertIn(part, done.stderr)
        # --strict requires kernels, and there is none.
        strict = self.tokamak(*words, "--strict", TOKAMAK_CHECK="codegen-crash:3", expect=3)
        self.assertIn("TK4005", strict.stderr)
        for word in ("codegen-", "codegen-crash:4", "codegen-cash", "codegen-crash:"):
            self.assertIn("TK6107", self.tokamak(*words, TOKAMAK_CHECK=word, expect=2).stderr)

    def test_check_ignores_overflow_dependent_values(self):
        # 3e38 + 3e38 - inf is NaN from left to right, but -inf if the last two are added first: whether it is infinite is unspecified.
        file = self.write("fold.hlo", """HloModule m
        add { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT s = f32[] add(a, b) }
        ENTRY main {
          x = f32[4,4] parameter(0)
          zero = f32[] constant(0)
          s = f32[4] reduce(x, zero), dimensions={1}, to_apply=add
          infinite = pred[4] is-inf(s)
          ROOT r = s32[4] convert(infinite) }""")
        words = ("run", file, "--inputs", self.path("in.npz"), "--backend", "sim", "--corrupt-kernel", "0")
        for row, expect in (([3e38, 1, -1, 2], 70), ([np.inf, 1, -1, 2], 70), ([3e38, 3e38, -np.inf, 2], 0)):
            np.savez(self.path("in.npz"), in_0=np.array([row] * 4, np.float32))
            self.assertEqual("TK4006" in self.tokamak(*words, TOKAMAK_CHECK="kernels", expect=expect).stderr, expect == 70, row)

    def test_expect_sees_a_wrong_kernel(self):
        words = ("run", self.write("steps.hlo", STEPS), "--seed", "1")
        file = self.path("right.npz")
        self.tokamak(*words, "--backend", "interp", "--outputs", file)
        for backend in ("sim", "cpu"):
            self.tokamak(*words, "--backend", backend, "--expect", file)
            text = self.tokamak(*words, "--backend", backend, "--expect", file, "--corrupt-kernel", "1", expect=1).stderr
            self.assertIn("TK6011", text)

    def test_no_gpu(self):
        if any(Path(folder, "libcuda.so.1").exists() for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64")):
            self.skipTest("there is a driver")
        path = self.write("x.hlo", DOUBLE.replace("TYPE", "f32[4]"))
        done = self.tokamak("run", path, "--backend", "cuda", "--seed", "1", expect=4)
        self.assertIn("TK4201", done.stderr)

    def test_a_cache_entry_of_another_program(self):
        """The machine code of one program, copied over the cache entry of another, is not run for it."""
        cache = Path(self.path("cache"))
        programs = [self.write(f"{op}.hlo", DOUBLE.replace("TYPE", "f32[64]").replace("add(", op + "(")) for op in ("add", "multiply")]
        run = lambda program: self.tokamak("run", program, "--seed", "1", "--backend", "cpu", TOKAMAK_CACHE=str(cache)).stdout
        entries, said = [], []
        for program in programs:
            said.append(run(program))
            entries.append(next(file for file in cache.iterdir() if file not in entries))
        self.assertNotEqual(*said)
        right = entries[1].read_bytes()
        entries[1].write_bytes(entries[0].read_bytes())
        self.assertEqual(run(programs[1]), said[1])
        self.assertEqual(entries[1].read_bytes(), right)  # rebuilt and stored again

    def test_reduce(self):
        body = "".join(f"  a{i} = f32[3] add(a{i - 1}, a{i - 1})\n" for i in range(1, 30))
        text = f"HloModule m\nENTRY main {{\n  a0 = f32[3] parameter(0)\n{body}  s = f32[3] sine(a5)\n  ROOT r = f32[3] multiply(s, a29)\n}}\n"
        file = self.write("big.hlo", text)
        self.tokamak("reduce", file, "--command", "! grep -q sine {}", "-o", self.path("small.hlo"))
        small = Path(self.path("small.hlo")).read_text()
        self.assertIn("sine", small)
        self.assertLess(small.count("="), 5, small)

    def test_reduce_kills_attempts_that_hang(self):
        file = self.write("big.hlo", "ENTRY e {\n  x = f32[3] parameter(0)\n  s = f32[3] sine(x)\n  ROOT c = f32[3] cosine(s)\n}\n")
        # Without the sine, the command starts a process that never ends, and waits for it.
        pids = self.path("pids")
        command = f"grep -q sine {{}} && exit 3; (echo $$ >>{pids}; exec sleep 1000) & echo $! >>{pids}; wait"
        begin = time.monotonic()
        done = self.tokamak("reduce", file, "--command", command, "--timeout", "0.5", "-o", self.path("small.hlo"))
        self.assertLess(time.monotonic() - begin, 60)
        small = Path(self.path("small.hlo")).read_text()
        self.assertIn("sine", small)
        self.assertNotIn("cosine", small)
        self.assertRegex(done.stdout, r"attempts? took longer than 0.5 s \(--timeout\) and counted as not failing")
        self.assert_gone(pids)

    def test_reduce_a_hanging_program(self):
        file = self.write("x.hlo", DOUBLE.replace("TYPE", "f32[4]"))
        done = self.tokamak("reduce", file, "--command", "sleep 1000 # {}", "--timeout", "0.2", expect=2)
        self.assertIn("TK6013", done.stderr)
        self.assertIn("does not end within 0.2 s (--timeout)", done.stderr)
        for wrong in ("0", "-1", "x"):
            self.tokamak("reduce", file, "--command", "true {}", "--timeout", wrong, expect=2)

    def test_reduce_interrupted_kills_the_attempt(self):
        file = self.write("x.hlo", DOUBLE.replace("TYPE", "f32[4]"))
        pids = self.path("pids")
        command = f"(exec sleep 1000) & echo $! $$ >{pids}.part; mv {pids}.part {pids}; wait; true {{}}"
        process = subprocess.Popen([TOKAMAK, "reduce", file, "--command", command])
        while not Path(pids).exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=10), -signal.SIGINT)
        self.assert_gone(pids)

    def assert_gone(self, file):
        """None of the processes whose ids are in the file exists any more."""
        pids = Path(file).read_text().split()
        self.assertTrue(pids)
        for pid in pids:
            status = Path(f"/proc/{pid}/status")
            for _ in range(100):
                if not status.exists() or "State:\tZ" in status.read_text():
                    break
                time.sleep(0.05)
            else:
                self.fail(f"process {pid} is still there")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
