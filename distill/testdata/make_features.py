# Writes features.json, features.npz and images.npz into this folder: losses of intermediate values of two small transformers and of two small
# convolutional networks, with their gradients, by PyTorch. Run: python make_features.py (with torch and numpy installed).
import json, os
import numpy as np, torch
import torch.nn.functional as F

torch.manual_seed(11)
N, S, IN = 2, 4, 3
x = torch.randn(N, S, IN)
mask = torch.tensor([[1.0, 1, 1, 1], [1, 1, 0, 0]])


def weights(width, layers):
    shapes = [(IN, width)] + [(width, width)] * 6 * layers
    return [(torch.randn(s) / s[0] ** 0.5).requires_grad_() for s in shapes]


def split(t, heads):
    return t.reshape(N, S, heads, -1).transpose(1, 2)


def encoder(w, heads):
    h = x @ w[0]
    hidden, probabilities, vectors = [h], [], []
    for i in range(1, len(w), 6):
        q, k, v = (h @ m for m in w[i:i + 3])
        size = q.shape[-1] // heads
        p = torch.softmax(split(q, heads) @ split(k, heads).transpose(2, 3) / size ** 0.5 + (1 - mask)[:, None, None] * -10000, -1)
        h = h + (p @ split(v, heads)).transpose(1, 2).reshape(N, S, -1) @ w[i + 3]
        h = h + torch.tanh(h @ w[i + 4]) @ w[i + 5]
        hidden, probabilities, vectors = hidden + [h], probabilities + [p], vectors + [(q, k, v)]
    return hidden, probabilities, vectors


student, teacher = weights(4, 2), weights(6, 4)
projections = [torch.randn(4, 6) / 2 for _ in range(3)]


def hidden(s, t):
    m = mask[:, :, None]
    return sum(F.mse_loss(a @ p * m, s_t * m) for a, p, s_t in zip(s[0], projections, (t[0][0], t[0][2], t[0][4]))) / 3


def attention(s, t):
    mean = lambda p: p.mean(1) * mask[:, :, None]
    return sum((mean(s[1][i]) - mean(t[1][j])).pow(2).sum(-1).mean() for i, j in ((0, 1), (1, 3))) / 2


def relations(s, t):
    total = 0
    for a, b in zip(s[2][-1], t[2][-1]):
        scores = [split(v, 2) @ split(v, 2).transpose(2, 3) / (v.shape[-1] / 2) ** 0.5 for v in (a, b)]
        log = [torch.log_softmax(r + (1 - mask)[:, None, None] * -10000, -1) for r in scores]
        rows = (log[1].exp() * (log[1] - log[0])).sum(-1) * mask[:, None]
        total = total + rows.sum() / rows.numel()
    return total / 3


images = torch.randn(N, 2, 6, 6)


def filters(*channels):
    return [(torch.randn(b, a, 3, 3) / (9 * a) ** 0.5).requires_grad_() for a, b in zip(channels, channels[1:])]


def convolutions(w):
    a = torch.tanh(F.conv2d(images, w[0], padding=1))
    b = torch.tanh(F.conv2d(F.max_pool2d(a, 2), w[1], padding=1))
    return a, b, b.mean((2, 3), keepdim=True)


small, large = filters(2, 3, 4), filters(2, 5, 6)
kernels = [torch.randn(5, 3, 1, 1), torch.randn(6, 4, 1, 1), torch.randn(6, 4, 1, 1)]


def hidden_images(s, t):
    return sum(F.mse_loss(F.conv2d(a, k), b) for a, k, b in zip(s, kernels, t)) / 3


def attention_images(s, t):
    q = lambda a: F.normalize(a.pow(2).sum(1).flatten(1), dim=1)
    return sum((q(a) - q(b)).pow(2).sum(1).mean() for a, b in zip(s[:2], t[:2])) / 2


flat = lambda t: [float(v) for v in t.detach().flatten()]
out = {"student": [flat(w) for w in student], "teacher": [flat(w) for w in teacher], "projections": [flat(p) for p in projections],
       "small": [flat(w) for w in small], "large": [flat(w) for w in large], "kernels": [flat(k) for k in kernels], "losses": [], "imageLosses": []}


def record(to, kind, weights, loss):
    for w in weights:
        w.grad = None
    loss.backward()
    gradients = [flat(w.grad if w.grad is not None else torch.zeros_like(w)) for w in weights]
    out[to].append({"kind": kind, "loss": float(loss.detach()), "gradients": gradients})


for f in (hidden, attention, relations):
    record("losses", f.__name__, student, f(encoder(student, 2), encoder(teacher, 3)))
record("imageLosses", "hidden", small, hidden_images(convolutions(small), convolutions(large)))
record("imageLosses", "attention", small, attention_images(convolutions(small), convolutions(large)))
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "features.json"), "w") as f:
    json.dump(out, f)
np.savez(os.path.join(here, "features.npz"), x=x.numpy(), mask=mask.numpy())
np.savez(os.path.join(here, "images.npz"), x=images.numpy())
