#!/usr/bin/env python3
"""Times PyTorch's scaled_dot_product_attention (cuDNN and flash backends, forward and backward) on the shapes of attn_bench.

The printed rows have the form of attn_bench's "ROW ours" lines.
"""
import statistics
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

SHAPES = [(16, 12, 512, 64), (4, 16, 2048, 128), (1, 16, 8192, 128)]
BACKENDS = (("cudnn", SDPBackend.CUDNN_ATTENTION), ("flash", SDPBackend.FLASH_ATTENTION))


def timed(run, samples=21, warm=3):
    """Returns the median time of one call in ms; run() returns how many calls it made."""
    for _ in range(warm):
        run()
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
    times = []
    for _ in range(samples):
        begin.record()
        n = run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / n)
    return statistics.median(times)


def graphed(calls, stream):
    """Returns a function that makes all calls, and how: one CUDA graph replay, or plain calls if capture fails."""
    try:
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            for call in calls:
                call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            keep = [call() for call in calls]
        torch.cuda.synchronize()

        def replay():
            graph.replay()
            return len(calls)

        replay.keep = (graph, keep)
        return replay, "graph"
    except RuntimeError as e:
        torch.cuda.synchronize()
        print(f"  (no graph: {str(e).splitlines()[0][:120]})", flush=True)

        def plain():
            for call in calls:
                call()
            return len(calls)

        return plain, "calls"


def operand_sets(b, h, s, d, causal, count, stream):
    """Returns `count` sets (q, k, v, output, gradient of the output): together they exceed the L2 cache."""
    sets = []
    with torch.cuda.stream(stream):
        for _ in range(count):
            q, k, v = (torch.randn(b, h, s, d, device="cuda", dtype=torch.bfloat16).requires_grad_() for _ in range(3))
            o = scaled_dot_product_attention(q, k, v, is_causal=causal)
            sets.append((q, k, v, o, torch.randn_like(o)))
    torch.cuda.synchronize()
    return sets


def row(name, backend, b, h, s, d, causal):
    """Times one backend on one shape and prints its row."""
    count = max(2, int(400e6 // (b * h * s * d * 2 * 8)) + 1)
    flops = 2.0 * b * h * s * s * d * (0.5 if causal else 1.0)
    stream = torch.cuda.Stream()

    def forward(t):
        with torch.no_grad():
            return scaled_dot_product_attention(t[0], t[1], t[2], is_causal=causal)

    def backward(t):
        return torch.autograd.grad(t[3], t[:3], t[4], retain_graph=True)

    with sdpa_kernel(backend):
        sets = operand_sets(b, h, s, d, causal, count, stream)
        repeat = max(1, min(10, int(1e-3 / (2 * flops / 400e12)) // count))
        run, how_f = graphed([lambda t=t: forward(t) for t in sets] * repeat, stream)
        ms_f = timed(run)
        run, how_b = graphed([lambda t=t: backward(t) for t in sets] * repeat, stream)
        ms_b = timed(run)
    shape = f"b{b} h{h} s{s} d{d}{' causal' if causal else ''}"
    print(f"ROW {name:<5} {shape:<26} fwd {ms_f:9.4f} ms {2 * flops / ms_f * 1e-9:6.1f} TFLOP/s [{how_f}]"
          f"  bwd {ms_b:9.4f} ms {5 * flops / ms_b * 1e-9:6.1f} TFLOP/s [{how_b}]", flush=True)


def main():
    """Times every backend on every shape; a row that fails does not stop the rest."""
    begin = time.time()
    print("torch", torch.__version__, "cudnn", torch.backends.cudnn.version(), torch.cuda.get_device_name(), flush=True)
    for b, h, s, d in SHAPES:
        for causal in (False, True):
            for name, backend in BACKENDS:
                try:
                    row(name, backend, b, h, s, d, causal)
                except RuntimeError as e:
                    print(f"ROW {name:<5} b{b} h{h} s{s} d{d}{' causal' if causal else ''} FAILED: {str(e).splitlines()[0][:160]}", flush=True)
                torch.cuda.empty_cache()
    print(f"peer took {time.time() - begin:.1f} s")


if __name__ == "__main__":
    main()
