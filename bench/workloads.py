"""Benchmark workloads in plain JAX (no platform-specific code).

    make(name, size) -> (fn, args)          what a compiler under test needs
    workload(name, size) -> W               the same plus metadata (ideal bytes, flops, carry ...)
    names(group) / sizes(name[, group])     enumeration

`size` is always a string token ("16777216", "65536x1024", "b16_s512"); ints are accepted.
`fn` is NOT jitted.  If W.carry == k the first k outputs are fed back as the first k arguments
of the next call (and those arguments are donated by the runner).  If W.calls is set, one timed
run is exactly that many calls (python loop of dispatches, as in the paper's naive CartPole).
Inputs are made with numpy from fixed seeds: nothing here depends on the compiler under test.
Keys are passed as raw uint32 arrays (typed key arrays would leave jit's C++ fast path).
W.config names jax.config flags that must hold while fn is traced, lowered AND called (workload.load does it).

The programs are in files by kind; their order here is that of the registry. Their names are this module's names, too.
"""
import sys

from workload_registry import *  # noqa: F403
from cartpole_programs import *  # noqa: F403
from bert_programs import *  # noqa: F403
from array_programs import *  # noqa: F403
from contraction_programs import *  # noqa: F403
from application_programs import *  # noqa: F403
import model_programs

model_programs.register(sys.modules[__name__])
