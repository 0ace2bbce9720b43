#!/usr/bin/env python3
"""PyTorch's times of the rows of bench/run_tensor_cores.py: a JSON line {label, variant, ms} or {label, variant, error} for each variant.

    bench/peers/torch_models.py [--seconds 300] [--tiny] LABEL...

A row has one or several variants: eager with PyTorch's fused operations (scaled_dot_product_attention, cuDNN's LSTM), and torch.compile.
Convolutions are several in a CUDA graph, over their number; the variant whose name begins with cuDNN is cuDNN's fastest engine that also
computes bias, residual and relu (torch.backends.cudnn.benchmark).
bf16 models run under autocast with f32 parameters, as the programs in JAX do. `--tiny` runs tiny sizes on a CPU.
"""
import argparse
import json
import math
import re
import sys
import time
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BF16 = torch.bfloat16
L2_BYTES = 64 << 20
TURNS, TURN_S = 7, 0.06
COPIES = 8  # convolutions in a CUDA graph, with inputs that exceed L2 together
BERT = dict(layers=12, hidden=768, heads=12, mlp=3072, vocab=30522, maxpos=512)
TINY_BERT = dict(layers=2, hidden=64, heads=2, mlp=128, vocab=512, maxpos=512)
LSTM_SCALE = 0.03


def sync():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def timed(call):
    """Milliseconds per call: the least of several turns, each with one wait at the end."""
    for _ in range(2):
        call()
    sync()
    best, calls = math.inf, 1
    for _ in range(TURNS):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        sync()
        took = (time.perf_counter() - begin) / calls
        best, calls = min(best, took), max(3, min(1000, int(TURN_S / took)))
    return best * 1e3


class Several:
    """Calls without gradients, as one CUDA graph; their time is divided by their number."""

    def __init__(self, calls):
        self.calls, self.replay = calls, None

    def all(self):
        with torch.no_grad():
            return [call() for call in self.calls]

    def __call__(self):
        if self.replay is None:
            self.all()  # libraries choose their algorithms here
            sync()
            self.replay = self.captured() if DEVICE == "cuda" else self.all
        self.replay()

    def captured(self):
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.results = self.all()
        return self.graph.replay


def kernels(call):
    """Kernels and copies of a call on the GPU; None on a CPU."""
    if DEVICE != "cuda":
        return None
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        call()
        sync()
    return sum(event.count for event in seen.key_averages() if "cuda" in str(event.device_type).lower())


def fields(size):
    return {m[1]: int(m[2]) for m in re.finditer(r"([a-z])(\d+)", size)}


def draw(*dims, dtype=BF16, scale=1.0):
    return (torch.randn(*dims, device=DEVICE) * scale).to(dtype)


# ---- products and layers


def product(name, tiny):
    shape, layout, *rest = name.rstrip(":").split("_", 2)
    *batch, m, n, k = (min(int(d), 33) if tiny else int(d) for d in shape.split("x"))
    count = max(1, min(8, math.ceil(2 * L2_BYTES / (2 * math.prod(batch) * (m * k + k * n + m * n)))))
    a = [draw(*batch, *((m, k) if layout[0] == "N" else (k, m)), scale=0.5) for _ in range(count)]
    b = [draw(*batch, *((k, n) if layout[1] == "N" else (n, k)), scale=0.5) for _ in range(count)]
    bias = draw(n, scale=0.5)
    epilogue, at = (rest or [""])[0], [0]

    def fn(x, y):
        x, y = x if layout[0] == "N" else x.mT, y if layout[1] == "N" else y.mT
        if epilogue == "scale_lhs":
            x = (x.float() * bias[0].float()).to(BF16)
        z = x @ y
        return F.gelu(z + bias, approximate="tanh") if epilogue == "bias_gelu" else z

    def calling(fn):
        def call():
            at[0] = (at[0] + 1) % count
            return fn(a[at[0]], b[at[0]])

        return call

    yield "eager", calling(fn)
    if epilogue:
        yield "torch.compile", calling(torch.compile(fn))


def attention(program, size, tiny):
    of = {"h": 12, "d": 64} | fields(size)
    b, h, s, d = (of[c] for c in "bhsd") if not tiny else (1, 2, 24, 16)
    causal, rate = "causal" in program, 0.1 if "_do_" in program else 0.0
    backward = program.endswith("_bwd")
    q, k, v = (draw(b, s, h, d).transpose(1, 2).requires_grad_(backward) for _ in range(3))
    slope = draw(b, s, h, d).transpose(1, 2)

    def forward():
        with torch.set_grad_enabled(backward):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, dropout_p=rate)

    def both():
        return torch.autograd.grad(forward(), (q, k, v), slope)

    yield "eager, scaled_dot_product_attention", both if backward else forward


def convolution(program, size, tiny):
    of = fields(size)
    b, r, i, o, k, s = (of[c] for c in "brioks")
    if tiny:
        b, r, i, o = 1, min(r, 9), min(i, 8), min(o, 8)
    last = {"memory_format": torch.channels_last}
    residual = program == "conv_add_relu"

    def operands():
        x, w, bias = draw(b, i, r, r).to(**last), draw(o, i, k, k, scale=0.05).to(**last), draw(o)
        return x, w, bias, draw(b, o, -(-r // s), -(-r // s)).to(**last) if residual else None

    def apart(x, w, bias, z):
        y = F.conv2d(x, w, bias, stride=s, padding=k // 2)
        return F.relu(y if z is None else y + z)

    def fused(x, w, bias, z):
        shape = (s, s), (k // 2, k // 2), (1, 1), 1
        return torch.cudnn_convolution_relu(x, w, bias, *shape) if z is None else torch.cudnn_convolution_add_relu(x, w, z, 1.0, bias, *shape)

    sets = [operands() for _ in range(2 if tiny else COPIES)]

    def several(fn):
        return Several([lambda one=one: fn(*one) for one in sets])

    if DEVICE == "cuda":
        yield "cuDNN, bias and relu fused, a CUDA graph", several(fused)
    yield "eager, a CUDA graph", several(apart)


def recurrence(program, size, tiny):
    b, h, t = (2, 8, 10) if tiny else map(int, size.split("x"))
    model, xs = nn.LSTM(h, h).to(DEVICE), draw(t, b, h, dtype=torch.float32)

    def forward():
        with torch.no_grad():
            return model(xs)[0]

    def both():
        model.zero_grad(set_to_none=True)
        (model(xs)[0] ** 2).sum().backward()

    yield "eager, nn.LSTM", both if program.endswith("_bwd") else forward


# ---- models


class EncoderLayer(nn.Module):
    def __init__(self, c, rate):
        super().__init__()
        h = c["hidden"]
        self.heads, self.rate = c["heads"], rate
        self.qkv, self.o, self.ln1 = nn.Linear(h, 3 * h), nn.Linear(h, h), nn.LayerNorm(h, eps=1e-12)
        self.f1, self.f2, self.ln2 = nn.Linear(h, c["mlp"]), nn.Linear(c["mlp"], h), nn.LayerNorm(h, eps=1e-12)

    def forward(self, x, mask):
        b, s, h = x.shape
        rate = self.rate if self.training else 0.0
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate)
        x = self.ln1(x + F.dropout(self.o(a.transpose(1, 2).reshape(b, s, h)), rate))
        return self.ln2(x + F.dropout(self.f2(F.gelu(self.f1(x))), rate))


class Bert(nn.Module):
    def __init__(self, c, rate):
        super().__init__()
        h, self.rate = c["hidden"], rate
        self.tok, self.pos, self.typ = nn.Embedding(c["vocab"], h), nn.Embedding(c["maxpos"], h), nn.Parameter(torch.zeros(2, h))
        self.ln, self.layers = nn.LayerNorm(h, eps=1e-12), nn.ModuleList(EncoderLayer(c, rate) for _ in range(c["layers"]))
        self.head, self.hln, self.bias = nn.Linear(h, h), nn.LayerNorm(h, eps=1e-12), nn.Parameter(torch.zeros(c["vocab"]))
        initialize(self)

    def encode(self, ids, mask):
        x = self.tok(ids) + self.pos.weight[: ids.shape[1]] + self.typ[0]
        x = F.dropout(self.ln(x), self.rate if self.training else 0.0)
        for layer in self.layers:
            x = layer(x, mask)
        return x

    def forward(self, ids, mask, labels):
        h = self.hln(F.gelu(self.head(self.encode(ids, mask))))
        logits = F.linear(h, self.tok.weight).float() + self.bias
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1), ignore_index=-100)


class DecoderLayer(nn.Module):
    def __init__(self, h, heads, rate):
        super().__init__()
        self.heads, self.rate = heads, rate
        self.ln1, self.qkv, self.o = nn.LayerNorm(h), nn.Linear(h, 3 * h), nn.Linear(h, h)
        self.ln2, self.f1, self.f2 = nn.LayerNorm(h), nn.Linear(h, 4 * h), nn.Linear(4 * h, h)

    def forward(self, x):
        b, s, h = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.rate)
        x = x + F.dropout(self.o(a.transpose(1, 2).reshape(b, s, h)), self.rate)
        return x + F.dropout(self.f2(F.gelu(self.f1(self.ln2(x)), approximate="tanh")), self.rate)


class Decoder(nn.Module):
    def __init__(self, layers, h, vocab, length, rate):
        super().__init__()
        self.rate = rate
        self.tok, self.pos, self.ln = nn.Embedding(vocab, h), nn.Embedding(length, h), nn.LayerNorm(h)
        self.layers = nn.ModuleList(DecoderLayer(h, max(1, h // 64), rate) for _ in range(layers))
        initialize(self)

    def forward(self, tokens):
        inputs, wanted = tokens[:, :-1], tokens[:, 1:]
        x = F.dropout(self.tok(inputs) + self.pos.weight[: inputs.shape[1]], self.rate)
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(self.ln(x), self.tok.weight).float()
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), wanted.reshape(-1))


def initialize(model):
    for m in model.modules():
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)


def training(model, loss, optimizer):
    """Variants of a training step; `loss`: of the model, under autocast."""
    def step(loss):
        def call():
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(DEVICE, dtype=BF16):
                value = loss()
            value.backward()
            optimizer.step()
            return value

        return call

    model.train()
    yield "torch.compile, scaled_dot_product_attention", step(torch.compile(loss))


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=1e-4, fused=DEVICE == "cuda")


def bert(program, size, tiny):
    of = fields("b2_s32" if tiny else size)
    c = dict(TINY_BERT if tiny else BERT)
    c["layers"] = fields(size).get("l", c["layers"])
    b, s = of["b"], of["s"]
    model = Bert(c, 0.1 if "do10" in program else 0.0).to(DEVICE)
    ids = torch.randint(0, c["vocab"], (b, s), device=DEVICE)
    labels = torch.where(torch.rand(b, s, device=DEVICE) < 0.15, ids, -100)
    mask = torch.ones(b, 1, 1, s, dtype=torch.bool, device=DEVICE)
    mask[::2, ..., int(s * 0.9) :] = False
    if "infer" not in program:
        yield from training(model, lambda: model(ids, mask, labels), adam(model))
        return
    model.eval()
    encode = torch.compile(model.encode)

    def call():
        with torch.no_grad(), torch.autocast(DEVICE, dtype=BF16):
            return encode(ids, mask)

    yield "torch.compile, scaled_dot_product_attention", call


def gpt(program, size, tiny):
    of = fields("l1_h64_b1_s16" if tiny else size)
    vocab = 331 if tiny else 50257
    model = Decoder(of["l"], of["h"], vocab, of["s"], 0.1).to(DEVICE)
    tokens = torch.randint(0, vocab, (of["b"], of["s"] + 1), device=DEVICE)
    yield from training(model, lambda: model(tokens), adam(model))


def resnet(program, size, tiny):
    import torchvision

    of = fields("b2_r32" if tiny else size)
    model = torchvision.models.resnet50().to(DEVICE, memory_format=torch.channels_last)
    images = torch.randn(of["b"], 3, of["r"], of["r"], device=DEVICE).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (of["b"],), device=DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=DEVICE == "cuda")
    yield from training(model, lambda: F.cross_entropy(model(images), labels), optimizer)


def variants(label, tiny):
    group, rest = label.split("/", 1)
    program, size = rest.split(":")
    if group == "products":
        return product(program, tiny)
    made = {"attention": attention, "convolutions": convolution, "bert": bert, "gpt": gpt, "resnet": resnet}.get(group)
    if group == "loops" and program.startswith("lstm"):
        made = recurrence
    return made(program, size, tiny) if made else iter(())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", nargs="+", metavar="LABEL")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no row after this time")
    parser.add_argument("--kernels", action="store_true", help="also count kernels, with the profiler")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    end = time.monotonic() + options.seconds
    for label in options.labels:
        if time.monotonic() > end:
            break
        torch._dynamo.reset()
        began = time.monotonic()
        failed = lambda error: json.dumps({"label": label, "variant": variant, "error": f"{type(error).__name__}: {str(error)[:200]}"})  # noqa: E731
        variant = "-"
        try:
            for variant, call in variants(label, options.tiny):
                try:
                    record = {"label": label, "variant": variant, "ms": timed(call) / (len(call.calls) if isinstance(call, Several) else 1), "version": torch.__version__}
                    record |= {"kernels": kernels(call)} if options.kernels else {}
                    print(json.dumps(record), flush=True)
                except Exception as error:  # a variant that fails must not cost the others
                    print(failed(error), flush=True)
        except Exception as error:  # the same of a row
            print(failed(error), flush=True)
        print(f"torch: {label}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
        call = None
        if DEVICE == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
