# Writes torch.json into this folder: results of PyTorch's optimizers, losses and clipping on small tensors.
# Run: python make.py (with torch installed).
import json, os, torch
import torch.nn.functional as F

torch.manual_seed(7)


def flat(t):
    return [float(x) for x in t.detach().flatten().to(torch.float64)]


def optimiser(make, steps=6, clip=None):
    w = torch.nn.Parameter(torch.randn(3, 5))
    start, grads, after = flat(w), [], []
    opt = make([w])
    for _ in range(steps):
        w.grad = torch.randn(3, 5)
        grads.append(flat(w.grad))
        if clip:
            torch.nn.utils.clip_grad_norm_([w], clip)
        opt.step()
        after.append(flat(w))
    return {"start": start, "grads": grads, "after": after}


updates = {
    "SGDUpdate": [
        ({}, 0.1, 0, lambda p: torch.optim.SGD(p, lr=0.1), None),
        ({"momentum": 0.9}, 0.1, 0.01, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01), None),
        ({"momentum": 0.9, "nesterov": 1}, 0.05, 0.01, lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01), None),
        ({"momentum": 0.5, "clip": 0.7}, 0.1, 0, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.5), 0.7),
    ],
    "AdamUpdate": [
        ({}, 0.01, 0, lambda p: torch.optim.Adam(p, lr=0.01), None),
        ({"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-6}, 0.02, 0.1, lambda p: torch.optim.Adam(p, lr=0.02, betas=(0.8, 0.99), eps=1e-6, weight_decay=0.1), None),
        ({"decoupled": 1}, 0.01, 0.2, lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.2), None),
    ],
}
out = {"updates": [], "losses": []}
for op, cases in updates.items():
    for attrs, rate, decay, make, clip in cases:
        out["updates"].append({"op": op, "attrs": attrs, "rate": rate, "decay": decay, **optimiser(make, clip=clip)})


def loss(op, attrs, x, target, f):
    x.requires_grad_()
    y = f(x, target)
    y.backward()
    out["losses"].append({"op": op, "attrs": attrs, "shape": list(x.shape), "x": flat(x), "targetShape": list(target.shape),
                          "target": flat(target), "loss": float(y.detach()), "gradient": flat(x.grad)})


labels = torch.tensor([3, 0, -100, 5])
loss("CrossEntropyLoss", {}, torch.randn(4, 6), labels, lambda x, t: F.cross_entropy(x, t))
loss("CrossEntropyLoss", {"smoothing": 0.1}, torch.randn(4, 6), labels, lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1))
loss("CrossEntropyLoss", {"smoothing": 0.2}, torch.randn(2, 6, 3), torch.randint(0, 6, (2, 3)), lambda x, t: F.cross_entropy(x, t, label_smoothing=0.2))
loss("CrossEntropyLoss", {"axis": -1}, torch.randn(2, 3, 6), torch.randint(0, 6, (2, 3)), lambda x, t: F.cross_entropy(x.transpose(1, 2), t))


def distill(T):
    return lambda x, t: F.kl_div(F.log_softmax(x / T, 1), F.softmax(t / T, 1), reduction="batchmean") * T * T


loss("DistillLoss", {"temperature": 4}, torch.randn(4, 6) * 5, torch.randn(4, 6) * 5, distill(4.0))
loss("DistillLoss", {}, torch.randn(4, 6), torch.randn(4, 6), distill(1.0))
loss("MeanSquaredLoss", {}, torch.randn(4, 6), torch.randn(4, 6), F.mse_loss)
loss("CosineLoss", {}, torch.randn(4, 6), torch.randn(4, 6), lambda x, t: (1 - F.cosine_similarity(x, t)).mean())
loss("SigmoidCrossEntropyLoss", {}, torch.randn(4, 1), torch.rand(4, 1), F.binary_cross_entropy_with_logits)

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch.json"), "w") as f:
    json.dump(out, f, separators=(",", ":"))
    f.write("\n")
