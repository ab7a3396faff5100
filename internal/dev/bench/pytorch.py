"""PyTorch's side of `make bench-train`: pytorch.py NET BATCH OPTIMIZER THREADS TYPE, float32 or bfloat16 for autocast.

For each number on stdin it takes so many steps of training on one batch, and prints the seconds and the CPU seconds of each.
"""
import sys, time
import torch
from torch import nn

BN = nn.BatchNorm2d


class Block(nn.Module):
    """Two convolutions with a shortcut connection (He et al., Deep Residual Learning, 2015, figure 2)."""

    def __init__(self, a, b, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), BN(b), nn.ReLU(), nn.Conv2d(b, b, 3, 1, 1, bias=False), BN(b))
        self.around = nn.Sequential() if a == b and stride == 1 else nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), BN(b))

    def forward(self, x):
        return torch.relu(self.body(x) + self.around(x))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def cnn():
    layers = []
    for a, b in ((3, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 10))


def resnet():
    layers, a = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), BN(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
    for b in (64, 128, 256, 512):
        layers += [Block(a, b, 1 if a == b else 2), Block(b, b, 1)]
        a = b
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


NETS = {"mlp": (mlp, (1, 28, 28), 10), "cnn": (cnn, (3, 32, 32), 10), "resnet": (resnet, (3, 224, 224), 1000)}


def main(name, batch, optimizer, threads, compute):
    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    make, shape, classes = NETS[name]
    net, x, labels = make().train(), torch.randn(int(batch), *shape), torch.randint(0, classes, (int(batch),))
    # Fused updates are the quickest that PyTorch has here.
    update = torch.optim.Adam(net.parameters(), fused=True) if optimizer == "adam" else torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9, fused=True)

    def step():
        start, used = time.perf_counter(), time.process_time()
        update.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=compute == "bfloat16"):
            loss = nn.functional.cross_entropy(net(x), labels)
        loss.backward()
        update.step()
        return time.perf_counter() - start, time.process_time() - used

    print(torch.__version__, flush=True)
    for line in sys.stdin:
        print(*[seconds for _ in range(int(line)) for seconds in step()], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
