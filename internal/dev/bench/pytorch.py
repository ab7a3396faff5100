"""PyTorch's side of `make bench-train`: pytorch.py NET BATCH OPTIMIZER THREADS TYPE [checkpoint] [teacher], TYPE float32 or bfloat16 for autocast.

For each number on stdin it takes so many steps of training on one batch, and prints the seconds and the CPU seconds of each; for "memory" it prints
the peak resident memory of the process in MiB, by how much steps raised it, and the loss of the last step. With checkpoint each block is recomputed in
the backward pass (torch.utils.checkpoint). With teacher the targets are the outputs of a second net of the same shape, computed in each step. pytorch.py log BATCH prints the live bytes after each layer of a ResNet-18, forward and backward.
"""
import ctypes, sys, time
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

BN = nn.BatchNorm2d


class Block(nn.Module):
    """Two convolutions with a shortcut connection (He et al., Deep Residual Learning, 2015, figure 2)."""

    def __init__(self, a, b, stride, inplace):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), BN(b), nn.ReLU(inplace), nn.Conv2d(b, b, 3, 1, 1, bias=False), BN(b))
        self.relu = nn.ReLU(inplace)
        self.around = nn.Sequential() if a == b and stride == 1 else nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), BN(b))

    def forward(self, x):
        return self.relu(self.body(x) + self.around(x))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def cnn():
    layers = []
    for a, b in ((3, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 10))


def resnet(inplace=False):
    layers, a = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), BN(64), nn.ReLU(inplace), nn.MaxPool2d(3, 2, 1)], 64
    for b in (64, 128, 256, 512):
        layers += [Block(a, b, 1 if a == b else 2, inplace), Block(b, b, 1, inplace)]
        a = b
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


class MiniLM(nn.Module):
    """An encoder of the shape of all-MiniLM-L6-v2 with a vocabulary of 3086 tokens."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions, self.norm = nn.Embedding(3086, 384), nn.Embedding(512, 384), nn.LayerNorm(384)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(384, 12, 1536, dropout=0, activation="gelu", batch_first=True) for _ in range(6))

    def forward(self, ids):
        x = self.norm(self.tokens(ids) + self.positions.weight[: ids.shape[1]])
        for layer in self.layers:
            x = layer(x)
        return x


def images(*shape, classes):
    return lambda batch: (torch.randn(batch, *shape), torch.randint(0, classes, (batch,)))


def tokens(count):
    return lambda batch: (torch.randint(0, 3086, (batch, count)), torch.randn(batch, count, 384))


NETS = {
    "mlp": (mlp, images(1, 28, 28, classes=10)), "cnn": (cnn, images(3, 32, 32, classes=10)),
    "resnet": (resnet, images(3, 224, 224, classes=1000)), "minilm": (MiniLM, tokens(128)),
}


def recompute(module):
    """Makes the backward pass recompute the results inside the module."""
    inner = module.forward
    module.forward = lambda *x, **options: checkpoint(inner, *x, use_reentrant=False, **options)


def resident(field):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith(field))


def main(name, batch, optimizer, threads, compute, *savings):
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    make, samples = NETS[name]
    net, (x, y) = make().train(), samples(int(batch))
    if "checkpoint" in savings:
        for module in list(net.modules()):
            if isinstance(module, (Block, nn.TransformerEncoderLayer)):
                recompute(module)
    # Fused updates are the quickest that PyTorch has here.
    updates = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    update = updates[optimizer](net.parameters(), fused=True) if optimizer in updates else torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, fused=True)
    teacher = make().eval() if "teacher" in savings else None
    criterion = nn.functional.mse_loss if y.is_floating_point() else nn.functional.cross_entropy
    before, last = resident("VmRSS"), [float("nan")]

    def targets(x):
        if teacher is None:
            return y
        with torch.no_grad():
            return teacher(x)

    def step():
        start, used = time.perf_counter(), time.process_time()
        update.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=compute == "bfloat16"):
            out = net(x)
        loss = criterion(out.float(), targets(x))
        loss.backward()
        update.step()
        last[0] = loss.item()
        return time.perf_counter() - start, time.process_time() - used

    print(torch.__version__, flush=True)
    for line in sys.stdin:
        if line.strip() == "memory":
            print(resident("VmHWM"), resident("VmHWM") - before, last[0], flush=True)
        else:
            print(*[seconds for _ in range(int(line)) for seconds in step()], flush=True)


class Heap(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]


def log(batch):
    """Live bytes of the C heap, which has all tensors, after the forward pass of each layer and before the backward pass of each."""
    torch.set_num_threads(2)
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = Heap
    events = []

    def note(kind, phase):
        heap = libc.mallinfo2()
        events.append((kind, phase, heap.uordblks + heap.hblkhd))

    def after(module, _, out):
        kind = type(module).__name__
        note(kind, "forward")
        out.grad_fn.register_prehook(lambda _: note(kind, "backward"))

    net = resnet(inplace=True).train()
    for module in net.modules():
        if isinstance(module, (nn.Conv2d, BN, nn.ReLU, nn.MaxPool2d, nn.Linear)):
            module.register_forward_hook(after)
    x, y = images(3, 224, 224, classes=1000)(int(batch))
    note("", "before")
    nn.functional.cross_entropy(net(x), y).backward()
    note("", "after")
    for event in events:
        print(*event, sep=",")


if __name__ == "__main__":
    log(sys.argv[2]) if sys.argv[1] == "log" else main(*sys.argv[1:])
