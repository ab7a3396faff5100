"""Writes transformer.json and mlp.json: models as graphs of ONNX, with outputs and gradients as PyTorch computes them.

python make_linear.py
"""

import json
import math
import pathlib

import torch
from torch.nn import functional as F

B, T, C, H, V = 2, 6, 8, 2, 11  # batch, tokens, channels, heads, words


def short(t):
    """Numbers of two decimals, which take little space and are the same float when they are read."""
    return (t * 100).round() / 100


def numbers(t):
    data = t.flatten().tolist()
    if t.dtype == torch.int64:
        return {"shape": list(t.shape), "ints": data}
    return {"shape": list(t.shape), "data": [float(f"{v:.8g}") for v in data]}


class Recorder:
    """Computes nodes while it writes them down."""

    def __init__(self, seed):
        self.random = torch.Generator().manual_seed(seed)
        self.params, self.consts, self.nodes, self.values = {}, {}, [], {}

    def param(self, name, *shape, scale=0.5):
        p = short(torch.randn(shape, generator=self.random) * scale).requires_grad_()
        self.params[name] = self.values[name] = p
        return name

    def const(self, name, value):
        self.consts[name] = self.values[name] = value
        return name

    def node(self, op, out, f, *inputs, **attrs):
        self.nodes.append({"op": op, "inputs": list(inputs), "output": out, "attrs": attrs})
        self.values[out] = f(*[self.values[i] for i in inputs])
        return out

    def write(self, name, output):
        y = self.values[output]
        dy = short(torch.randn(y.shape, generator=self.random))
        grads = torch.autograd.grad(y, list(self.params.values()), dy)
        record = {
            "params": {k: numbers(v.detach()) for k, v in self.params.items()},
            "consts": {k: numbers(v) for k, v in self.consts.items()},
            "nodes": self.nodes, "output": output, "y": numbers(y.detach()), "dy": numbers(dy),
            "grads": {k: numbers(g) for k, g in zip(self.params, grads)},
        }
        path = pathlib.Path(__file__).with_name(name + ".json")
        path.write_text(json.dumps(record, separators=(",", ":")) + "\n")


def transformer():
    """One block with embeddings of words and positions, a causal mask, and the words' table as last weight."""
    r = Recorder(1)
    ids = r.const("ids", torch.randint(V, (B, T), generator=r.random))
    places = r.const("places", torch.arange(T))
    words, positions = r.param("words", V, C), r.param("positions", T, C)
    x = r.node("Gather", "x0", lambda w, i: w[i], words, ids)
    p = r.node("Gather", "p0", lambda w, i: w[i], positions, places)
    x = r.node("Add", "x", torch.add, x, p)

    def norm(x, name):
        g, b = r.param(name + ".g", C), r.param(name + ".b", C)
        return r.node("LayerNormalization", name, lambda x, g, b: F.layer_norm(x, (C,), g, b), x, g, b, axis=-1, epsilon=1e-5)

    def dense(x, name, inner, outer):
        w, b = r.param(name + ".w", inner, outer), r.param(name + ".b", outer)
        y = r.node("MatMul", name + ".y", torch.matmul, x, w)
        return r.node("Add", name, torch.add, y, b)

    h = norm(x, "ln1")
    heads = r.const("heads", torch.tensor([0, 0, H, C // H]))
    sides = []
    for name, perm in ("q", (0, 2, 1, 3)), ("k", (0, 2, 3, 1)), ("v", (0, 2, 1, 3)):
        y = dense(h, name, C, C)
        y = r.node("Reshape", name + ".heads", lambda y, s: y.reshape(B, T, H, C // H), y, heads)
        sides.append(r.node("Transpose", name + ".t", lambda y, perm=perm: y.permute(perm), y, perm=list(perm)))
    s = r.node("MatMul", "s", torch.matmul, sides[0], sides[1])
    root = r.const("root", torch.tensor(math.sqrt(C // H)))
    s = r.node("Div", "scaled", torch.div, s, root)
    mask = r.const("mask", torch.full((1, 1, T, T), -1e9).triu(1))
    s = r.node("Add", "masked", torch.add, s, mask)
    s = r.node("Softmax", "weights", lambda s: s.softmax(-1), s, axis=-1)
    y = r.node("MatMul", "a", torch.matmul, s, sides[2])
    y = r.node("Transpose", "a.t", lambda y: y.permute(0, 2, 1, 3), y, perm=[0, 2, 1, 3])
    joined = r.const("joined", torch.tensor([0, 0, C]))
    y = r.node("Reshape", "a.joined", lambda y, s: y.reshape(B, T, C), y, joined)
    x = r.node("Add", "x1", torch.add, x, dense(y, "o", C, C))
    h = r.node("Gelu", "gelu", F.gelu, dense(norm(x, "ln2"), "up", C, 2 * C))
    x = r.node("Add", "x2", torch.add, x, dense(h, "down", 2 * C, C))
    table = r.node("Transpose", "table", torch.t, words, perm=[1, 0])
    r.write("transformer", r.node("MatMul", "logits", torch.matmul, norm(x, "ln3"), table))


def mlp():
    """Two layers and cross-entropy."""
    r = Recorder(2)
    x = r.const("x", short(torch.randn(5, 7, generator=r.random)))
    for i, (inner, outer) in enumerate([(7, 9), (9, 4)]):
        w, b = r.param(f"w{i}", outer, inner), r.param(f"b{i}", outer)
        x = r.node("Gemm", f"h{i}", F.linear, x, w, b, transB=1)
        if i == 0:
            x = r.node("Relu", "relu", F.relu, x)
    logs = r.node("LogSoftmax", "logs", lambda x: x.log_softmax(-1), x, axis=-1)
    labels = torch.tensor([0, 3, 1, 1, 2])
    index = r.const("labels", labels[:, None])
    picked = r.node("GatherElements", "picked", lambda x, i: x.gather(1, i), logs, index, axis=1)
    mean = r.node("ReduceMean", "mean", torch.mean, picked, keepdims=0)
    loss = r.node("Neg", "loss", torch.neg, mean)
    assert torch.allclose(r.values[loss], F.cross_entropy(r.values["h1"], labels))
    r.write("mlp", loss)


def activations():
    """Functions of one operand, each of the same numbers, added up."""
    r = Recorder(3)
    x = r.param("x", 6, 7, scale=2)
    functions = {
        "Celu": (F.celu, {}), "Elu": (F.elu, {}), "Gelu": (F.gelu, {}), "HardSigmoid": (F.hardsigmoid, {"alpha": 1 / 6, "beta": 0.5}),
        "HardSwish": (F.hardswish, {}), "LeakyRelu": (F.leaky_relu, {}), "Mish": (F.mish, {}), "Relu": (F.relu, {}), "Selu": (F.selu, {}),
        "Sigmoid": (torch.sigmoid, {}), "Softplus": (F.softplus, {}), "Softsign": (F.softsign, {}), "Swish": (F.silu, {}),
        "Tanh": (torch.tanh, {}), "Erf": (torch.erf, {}), "Softmax": (lambda x: x.softmax(-1), {"axis": -1}),
    }
    total = x
    for op, (f, attrs) in functions.items():
        weight = r.const("of" + op, short(torch.randn(6, 7, generator=r.random)))
        y = r.node("Mul", "weighted" + op, torch.mul, r.node(op, "y" + op, f, x, **attrs), weight)
        total = r.node("Add", "with" + op, torch.add, total, y)
    r.write("activations", total)


if __name__ == "__main__":
    transformer()
    mlp()
    activations()
