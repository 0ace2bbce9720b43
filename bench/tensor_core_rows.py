"""The rows of bench/run_tensor_cores.py: what is measured, at which size, against which bar.

A row is a label GROUP/NAME:SIZE. `tiny` is the size of the same program with which --tiny tries the command on a CPU. A bar is what the project
wants to reach on one H200: ("ms", 0.06) at most that time, ("ratio", 0.95) at least that many times XLA's speed, ("compile_s", 4) at most
that long to compile.
"""
import dataclasses

import model_programs


@dataclasses.dataclass(frozen=True)
class Row:
    group: str
    program: str  # a workload of workloads.py, or a product of run_products.SHAPES as text
    size: str
    tiny: str  # "SIZE", or "PROGRAM:SIZE"
    bar: tuple = ()
    kind: str = "workload"  # or "product", "compile"

    @property
    def label(self):
        return f"{self.group}/{self.program}:{self.size}"

    def workload(self, tiny):
        """(name, size) in workloads.py"""
        if not tiny:
            return self.program, self.size
        *program, size = self.tiny.split(":")
        return (program or [self.program])[0], size


def attention():
    small, tiny = "b16_s512", "b1_s24"
    yield Row("attention", "attn_fwd", small, tiny, ("ms", 0.06))
    yield Row("attention", "attn_bwd", small, tiny)
    yield Row("attention", "attn_causal_do_fwd", small, tiny, ("ms", 0.15))
    yield Row("attention", "attn_causal_do_bwd", small, tiny, ("ms", 0.35))
    for size in ("b4_h16_s2048_d128", "b1_h16_s8192_d128"):
        for program in ("sdpa_fwd", "sdpa_bwd", "sdpa_causal_fwd", "sdpa_causal_bwd"):
            yield Row("attention", program, size, "b1_h2_s24_d16")


def models():
    for program, bar in (("train_do0", 18.5), ("train_do10", 20), ("train_do0_sdpa", 17.5), ("infer", 5)):
        yield Row("bert", f"bert_{program}", "b16_s512", f"bert_tiny_{program}:b1_s16", ("ms", bar))
    yield Row("gpt", "gpt_train", "l6_h512_b16_s512", "gpt_tiny_train:l1_h64_b1_s16")
    yield Row("gpt", "gpt_train", "l12_h768_b8_s1024", "gpt_tiny_train:l2_h64_b1_s16")
    yield Row("resnet", "resnet50_train", "b64_r224", "b1_r32", ("ratio", 1.2))


def loops():
    yield Row("loops", "cartpole_policy", "2048", "16", ("ratio", 5))
    yield Row("loops", "cartpole_policy", "131072", "32")
    yield Row("loops", "lstm_scan", "32x256x1000", "2x8x10", ("ms", 1.6))
    yield Row("loops", "lstm_scan_bwd", "32x256x1000", "2x8x10", ("ms", 7))


def convolutions():
    for program, size in model_programs.resnet_layers(32):
        of = model_programs.fields(size)
        yield Row("convolutions", program, size, f"b1_r{min(of['r'], 9)}_i{min(of['i'], 8)}_o{min(of['o'], 8)}_k{of['k']}_s{of['s']}", ("ratio", 0.95))


PRODUCT_RATIO = 0.97  # each product, unless its bar is a time
PRODUCT_MS = {"4096x4096x4096_NN_bias_gelu": 0.19}


def products(shapes):
    for batch, m, n, k, layout, epilogue in shapes:
        name = "_".join(filter(None, [("" if batch == 1 else f"{batch}x") + f"{m}x{n}x{k}", layout, epilogue]))
        yield Row("products", name, "", "", ("ms", PRODUCT_MS[name]) if name in PRODUCT_MS else ("ratio", PRODUCT_RATIO), "product")


def rows(shapes):
    """All rows, in the order of the page; `shapes`: run_products.SHAPES."""
    return [*products(shapes), *attention(), *models(), *loops(), *convolutions(),
            Row("compile", "bert_train_do10", "b16_s512", "bert_tiny_train_do10:b1_s16", ("compile_s", 4), "compile")]  # fmt: skip
