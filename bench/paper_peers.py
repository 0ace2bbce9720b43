"""CartPole on other systems: PyTorch, Triton and hand-written CUDA, from the programs of bench/peers. A missing peer is a row with the
reason."""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

NVCC = ("nvcc", "/usr/local/cuda/bin/nvcc")
TORCH = {"eager_naive": "PyTorch eager", "torchscript_naive": "TorchScript", "compile_naive": "torch.compile",
         "compile_reduce_overhead_naive": "torch.compile, CUDA graphs", "compile_naive_unroll10": "torch.compile, 10 steps a call",
         "triton_fused_philox": "Triton by hand, one kernel (Philox)", "triton_fused_norng": "Triton by hand, one kernel, no draws"}  # fmt: skip
CUDA = {"fused_threefry": "CUDA by hand, one kernel (threefry at reset)", "fused_norng": "CUDA by hand, one kernel, no draws",
        "perstep_threefry": "CUDA by hand, a kernel a step"}  # fmt: skip
EXACT = "CUDA by hand, JAX's own draws"


def nvcc():
    return next((found for name in NVCC if (found := shutil.which(name))), None)


class HandWritten:
    """The CUDA programs: compiled while other things are measured, run on request."""

    def __init__(self, peers, folder):
        self.folder, self.building, self.why = Path(folder), {}, None
        if not (peers / "cartpole_cuda.cu").is_file():
            self.why = f"{peers}/cartpole_cuda.cu is not there (--peers)"
        elif not nvcc():
            self.why = "no nvcc on this machine"
        else:
            for name, source in (("exact", "cartpole_cuda_exact.cu"), ("plain", "cartpole_cuda.cu")):
                command = [nvcc(), "-O3", "-std=c++17", "-arch=sm_90", "-o", str(self.folder / name), str(peers / source)]
                self.building[name] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def rows(self, seconds):
        """[{peer, n, ms}] or rows with `why`."""
        if self.why:
            return [{"peer": "CUDA by hand", "why": self.why}]
        made = []
        for name, process in self.building.items():
            try:
                said, _ = process.communicate(timeout=seconds)
                if process.returncode:
                    raise RuntimeError("nvcc: " + (said.strip().splitlines() or ["failed"])[0])
                done = subprocess.run([str(self.folder / name)], capture_output=True, text=True, timeout=seconds)
                if done.returncode:
                    raise RuntimeError((done.stdout + done.stderr).strip()[:200])
                made += self.exact(done.stdout) if name == "exact" else self.plain(done.stdout)
            except (subprocess.TimeoutExpired, RuntimeError, OSError) as error:
                process.kill()
                made.append({"peer": "CUDA by hand" if name == "plain" else EXACT, "why": str(error)[:200]})
        return made

    @staticmethod
    def exact(text):
        keys = re.search(r"keys kernel ([\d.]+)", text)
        keys = float(keys[1]) if keys else 0.0
        for n, all_draws, lazy, chain in re.findall(r"N=(\d+) eager ([\d.]+) lazy ([\d.]+) chain-in-thread\+lazy ([\d.]+)", text):
            yield {"peer": EXACT + ", keys in each thread", "n": int(n), "ms": float(chain), "kernels": 1}
            yield {"peer": EXACT + ", keys in a kernel of their own", "n": int(n), "ms": float(lazy) + keys, "kernels": 2}
            yield {"peer": EXACT + ", keys given", "n": int(n), "ms": float(lazy), "kernels": 1}

    @staticmethod
    def plain(text):
        for line in text.splitlines():
            record = json.loads(line) if line.startswith("{") else {}
            if record.get("variant") in CUDA:
                yield {"peer": CUDA[record["variant"]], "n": record["n"], "ms": record["ms"], "kernels": record.get("kernels")}


def torch_rows(peers, device, seconds, sizes):
    """PyTorch's rows; the child ends by itself before the limit."""
    script = peers / "cartpole_torch.py"
    if not script.is_file():
        return [{"peer": "PyTorch", "why": f"{script} is not there (--peers)"}]
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode:
        return [{"peer": "PyTorch, TorchScript, torch.compile, Triton", "why": "this Python has no torch"}]
    command = [sys.executable, str(script), "--device", device, "--budget", str(seconds * 0.6), "--n", ",".join(map(str, sizes))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        text, why = done.stdout, (done.stderr.strip().splitlines() or ["said nothing"])[-1][:200]
    except subprocess.TimeoutExpired as error:
        text, why = (error.stdout or b"").decode() if isinstance(error.stdout, bytes) else error.stdout or "", f"stopped after {seconds:.0f} s"
    made = []
    for line in text.splitlines():
        record = json.loads(line) if line.startswith("{") else {}
        name = TORCH.get(record.get("variant"))
        if name and "ms" in record:
            made.append({"peer": name, "n": record["n"], "ms": record["ms"], "compile_s": record["compile_s"], "kernels": record.get("kernels"),
                         "version": record.get("version")})  # fmt: skip
        elif name and "error" in record:
            made.append({"peer": name, "n": record["n"], "why": record["error"][:160]})
    return made or [{"peer": "PyTorch", "why": why}]
