"""The rows of bench/run_tensor_cores.py: what is measured, at which size, against which bar.

A row is a label GROUP/NAME:SIZE. `tiny` is the size of the same program with which --tiny tries the command on a CPU. A bar is what the project
wants to reach on one H200; tensor_core_bars.py says what each kind of bar compares:

    ("ms", 0.06)               at most that time
    ("backward_ms", 0.35)      the same, of the backward pass alone
    ("ratio", 1.2)             at least that many times XLA's speed
    ("cudnn", 0.8)             at least that many times the speed of cuDNN's attention, which XLA calls
    ("cudnn_backward", 0.7)    the same, of the backward pass alone
    ("fused", 0.85)            at least that many times the speed of cuDNN's fastest engine with its own fusion of bias, residual and relu
    ("compile_s", 4)           at most that long to compile
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
    kind: str = "workload"  # or "product", "convolution", "compile"
    forward: str = ""  # of a row that times both passes: the label of the row that times the forward pass alone
    explained: bool = False  # its plan is looked at, too: how many kernels are calls of the library
    among: tuple = ()  # the summaries of tensor_core_bars.SUMMARIES that it belongs to

    @property
    def label(self):
        return f"{self.group}/{self.program}:{self.size}"

    def workload(self, tiny):
        """(name, size) in workloads.py"""
        if not tiny:
            return self.program, self.size
        *program, size = self.tiny.split(":")
        return (program or [self.program])[0], size


def passes(forward, backward, size, tiny, bars):
    """The rows of a forward pass, and of both."""
    first = Row("attention", forward, size, tiny, bars[0])
    return [first, Row("attention", backward, size, tiny, bars[1], forward=first.label)]


def attention():
    small, tiny = "b16_s512", "b1_s24"
    yield from passes("attn_fwd", "attn_bwd", small, tiny, (("ms", 0.06), ()))
    yield from passes("attn_causal_do_fwd", "attn_causal_do_bwd", small, tiny, (("ms", 0.15), ("backward_ms", 0.35)))
    for size in ("b4_h16_s2048_d128", "b1_h16_s8192_d128"):
        for name in ("sdpa", "sdpa_causal"):
            yield from passes(f"{name}_fwd", f"{name}_bwd", size, "b1_h2_s24_d16", (("cudnn", 0.8), ("cudnn_backward", 0.7)))


def bert():
    for program, bar in (("train_do0", 18.5), ("train_do10", 20), ("train_do0_sdpa", 17.5), ("infer", 5)):
        yield Row("bert", f"bert_{program}", "b16_s512", f"bert_tiny_{program}:b1_s16", ("ms", bar), explained=program == "train_do10")


def models():
    yield Row("gpt", "gpt_train", "l6_h512_b16_s512", "gpt_tiny_train:l1_h64_b1_s16", ("ratio", 1.2))
    yield Row("gpt", "gpt_train", "l12_h768_b8_s1024", "gpt_tiny_train:l2_h64_b1_s16", ("ratio", 1.2))
    yield Row("resnet", "resnet50_train", "b64_r224", "b1_r32", ("ratio", 1.2))


def loops():
    yield Row("loops", "cartpole_policy", "2048", "16", ("ratio", 5))
    yield Row("loops", "cartpole_policy", "131072", "32", ("ratio", 4))
    yield Row("loops", "lstm_scan", "32x256x1000", "2x8x10", ("ms", 1.6))
    yield Row("loops", "lstm_scan_bwd", "32x256x1000", "2x8x10", ("ms", 7))


def convolutions():
    for program, size in model_programs.resnet_layers(32):
        of = model_programs.fields(size)
        tiny = f"b1_r{min(of['r'], 9)}_i{min(of['i'], 8)}_o{min(of['o'], 8)}_k{of['k']}_s{of['s']}"
        yield Row("convolutions", program, size, tiny, ("fused", 0.85), "convolution", among=("convolutions",))


PRODUCT_RATIO = 0.97  # the least of the 20 shapes
PRODUCT_MS = {"4096x4096x4096_NN_bias_gelu": 0.19}
LARGE_FLOP = 1.6e10  # twelve of the 20 shapes have at least as many


def listed(m, n, k, layout, epilogue):
    """Whether a product is one of the 20 shapes: no epilogue, and 4096^3 in one layout only."""
    return not epilogue and not (m == n == k == 4096 and layout != "NN")


def products(shapes):
    for batch, m, n, k, layout, epilogue in shapes:
        name = "_".join(filter(None, [("" if batch == 1 else f"{batch}x") + f"{m}x{n}x{k}", layout, epilogue]))
        among = ("shapes",) if listed(m, n, k, layout, epilogue) else ()
        among += ("own",) if among and 2 * batch * m * n * k >= LARGE_FLOP else ()
        yield Row("products", name, "", "", ("ms", PRODUCT_MS[name]) if name in PRODUCT_MS else ("ratio", PRODUCT_RATIO), "product", among=among)


def compilations():
    yield Row("compile", "bert_train_do10", "b16_s512", "bert_tiny_train_do10:b1_s16", ("compile_s", 4), "compile")


# The order of measurement: if time is short, the last groups wait. PyTorch's: first those that a bar needs, last those that compile long.
FIRST = ("bert", "attention", "products", "convolutions", "gpt", "loops", "resnet", "compile")
TORCH_FIRST = ("convolutions", "attention", "products", "loops", "bert", "gpt", "resnet")


def rows(shapes):
    """All rows, in the order of the page; `shapes`: run_products.SHAPES."""
    return [*products(shapes), *attention(), *bert(), *models(), *loops(), *convolutions(), *compilations()]
