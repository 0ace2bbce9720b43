"""Fork and exit: tests that need a separate process."""

import os
import time

from conftest import output, python

SLOW = """
import jax, jax.numpy as jnp
f = jax.jit(lambda x: jax.lax.fori_loop(0, 10**9, lambda i, c: jnp.sin(c) + 1, x))
"""


def test_exit_with_work_in_flight():
    begin = time.monotonic()
    done = python(SLOW + "y = f(jnp.ones(1000)); print('started')", timeout=60)
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr
    assert time.monotonic() - begin < 60


def test_exit_with_unreferenced_work_in_flight():
    done = python(SLOW + "f(jnp.ones(1000)); f(jnp.ones(1000)); print('started')", timeout=60)
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr


def test_sys_exit_inside_a_thread_pool():
    code = """
import concurrent.futures, sys, jax, jax.numpy as jnp
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(lambda i: float(jnp.full(3, i).sum()), range(10))))
sys.exit(3)
"""
    done = python(code)
    assert (done.returncode, done.stdout) == (3, "135.0\n"), done.stderr


def test_fork_gives_the_child_an_exception():
    code = """
import os, warnings, jax, jax.numpy as jnp
warnings.simplefilter("ignore")
x = jnp.arange(4.)
f = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c @ c.T, x))
jax.block_until_ready(f(jnp.ones((30, 30))))
pid = os.fork()
if pid == 0:
    try:
        jax.block_until_ready(f(jnp.ones((30, 30))))
        os._exit(1)
    except Exception as error:
        os._exit(0 if "fork" in str(error) else 2)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), float(x.sum()))
"""
    done = python(code, timeout=60)
    assert done.stdout == "0 6.0\n", done.stdout + done.stderr


def test_fork_before_the_first_use_is_fine():
    code = """
import os, jax, jax.numpy as jnp
pid = os.fork()
os.write(1, f"{float(jnp.ones(3).sum())}\\n".encode())  # in one piece: both write at once
if pid: os.waitpid(pid, 0)
"""
    done = python(code)
    assert (done.returncode, done.stdout) == (0, "3.0\n3.0\n"), done.stderr


def test_subprocess_with_spawn():
    code = """
import multiprocessing, jax.numpy as jnp
print(float(jnp.ones(3).sum()), flush=True)
if __name__ == "__main__":
    import subprocess, sys
    print(subprocess.run([sys.executable, "-c", "import jax.numpy as jnp; print(float(jnp.ones(2).sum()))"], capture_output=True, text=True).stdout, end="")
"""
    assert output(code) == "3.0\n2.0\n"


def test_library_unloads_nothing_under_us():
    assert output("import tokamak, os; print(os.path.basename(tokamak.library_path()))") == "libtokamak.so\n"


def test_many_calls_leave_memory_flat():
    code = """
import resource, jax, jax.numpy as jnp
f, x = jax.jit(lambda x: x + 1), jnp.ones(8)
def rss(): return int(open('/proc/self/statm').read().split()[1]) * 4
for _ in range(3000): y = f(x)
y.block_until_ready(); before = rss()
for _ in range(15000): y = f(x)
y.block_until_ready()
print(rss() - before < 4000)
"""
    assert output(code) == "True\n"


def test_pid():
    assert output("import os; import jax; jax.devices(); print(os.getpid() > 0)") == "True\n"
    assert os.getpid() > 0
