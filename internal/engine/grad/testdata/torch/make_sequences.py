"""Writes decoder.json and recurrent.json: a block of a decoder with grouped-query attention, and recurrent layers, as PyTorch computes them.

python make_sequences.py
"""

import torch
from torch import nn
from torch.nn import functional as F

from make_linear import Recorder

B, T, C, H, KV, V = 2, 5, 8, 4, 2, 11  # batch, tokens, channels, heads of queries and of keys, words
S = C // H


def decoder():
    """RMSNorm, rotary positions, grouped-query attention, SwiGLU, and the words' table as last weight."""
    r = Recorder(3)
    ids = r.const("ids", torch.randint(V, (B, T), generator=r.random))
    places = r.const("places", torch.arange(T).repeat(B, 1))
    angles = torch.arange(T)[:, None] / torch.tensor([1.0])
    cos, sin = r.const("cos", torch.cos(angles)), r.const("sin", torch.sin(angles))
    words = r.param("words", V, C)
    x = r.node("Gather", "x", lambda w, i: w[i], words, ids)

    def norm(x, name):
        g = r.param(name + ".g", C)
        return r.node("RMSNormalization", name, lambda x, g: F.rms_norm(x, (C,), g, 1e-5), x, g, axis=-1, epsilon=1e-5)

    def dense(x, name, inner, outer):
        w = r.param(name + ".w", inner, outer)
        return r.node("MatMul", name, torch.matmul, x, w)

    def rotary(x, name, heads):
        def f(x, cos, sin, places):
            x = x.view(B, T, heads, S)
            c, s = cos[places][:, :, None], sin[places][:, :, None]
            a, b = x[..., : S // 2], x[..., S // 2 :]
            return torch.cat([a * c - b * s, b * c + a * s], -1).view(B, T, heads * S)

        return r.node("RotaryEmbedding", name, f, x, cos, sin, places, num_heads=heads)

    def attention(q, k, v):
        q, k, v = (x.view(B, T, -1, S).transpose(1, 2) for x in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).reshape(B, T, C)

    n = norm(x, "n1")
    q, k, v = (dense(n, name, C, heads * S) for name, heads in (("q", H), ("k", KV), ("v", KV)))
    q, k = rotary(q, "q.r", H), rotary(k, "k.r", KV)
    a = r.node("Attention", "a", attention, q, k, v, q_num_heads=H, kv_num_heads=KV, is_causal=1)
    x = r.node("Add", "x1", torch.add, x, dense(a, "o", C, C))
    n = norm(x, "n2")
    gate = r.node("Swish", "silu", F.silu, dense(n, "gate", C, 12))
    up = r.node("Mul", "glu", torch.mul, gate, dense(n, "up", C, 12))
    x = norm(r.node("Add", "x2", torch.add, x, dense(up, "down", 12, C)), "n3")
    table = r.node("Transpose", "table", lambda w: w.t(), words, perm=[1, 0])
    r.write("decoder", r.node("MatMul", "logits", torch.matmul, x, table))


def layer(kind, x, w, r, b):
    """Y of torch's layer with the weights of ONNX: [T, D, N, H]."""
    d, g, h = r.shape[0], w.shape[1], r.shape[2]
    order = {"LSTM": [0, 2, 3, 1], "GRU": [1, 0, 2], "RNN": [0]}[kind]  # torch's gates are i f g o, and r z n
    net = getattr(nn, kind)(x.shape[-1], h, bidirectional=d == 2)

    def permuted(m):
        return torch.cat([m.narrow(0, i * h, h) for i in order])

    weights = []
    for i in range(d):
        weights += [permuted(w[i]), permuted(r[i]), permuted(b[i, :g]), permuted(b[i, g:])]
    names = [n for n, _ in net.named_parameters()]
    y = torch.func.functional_call(net, dict(zip(names, weights)), (x,))[0]
    return y.view(x.shape[0], x.shape[1], d, h).transpose(1, 2)


def recurrent():
    """A bidirectional LSTM, a GRU and an RNN."""
    r = Recorder(4)
    t, n, h = 4, 2, 3
    x, inner = r.param("x", t, n, 5), 5
    for kind, gates, d in (("LSTM", 4, 2), ("GRU", 3, 1), ("RNN", 1, 1)):
        name = kind.lower()
        w, rr, b = r.param(name + ".w", d, gates * h, inner), r.param(name + ".r", d, gates * h, h), r.param(name + ".b", d, 2 * gates * h)
        attrs = {"hidden_size": h}
        if d == 2:
            attrs["direction"] = "bidirectional"
        if kind == "GRU":
            attrs["linear_before_reset"] = 1
        y = r.node(kind, name, lambda x, w, rr, b, kind=kind: layer(kind, x, w, rr, b), x, w, rr, b, **attrs)
        y = r.node("Transpose", name + ".t", lambda y: y.permute(0, 2, 1, 3), y, perm=[0, 2, 1, 3])
        shape = r.const(name + ".shape", torch.tensor([t, n, d * h]))
        x, inner = r.node("Reshape", name + ".y", lambda y, s: y.reshape(*s.tolist()), y, shape), d * h
    r.write("recurrent", x)


if __name__ == "__main__":
    decoder()
    recurrent()
