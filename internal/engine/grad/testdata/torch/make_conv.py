"""Writes conv.json: gradients of convolutions, pools and normalizations as PyTorch computes them.

python make_conv.py
"""

import json
import pathlib

import torch
from torch.nn import functional as F


def numbers(t):
    return {"shape": list(t.shape), "data": [float(f"{v:.7g}") for v in t.flatten().tolist()]}


def short(t):
    """Numbers of two decimals, which take little space and are the same float when they are read."""
    return (t * 100).round() / 100


def case(op, attrs, inputs, f, **more):
    """The gradients of sum(dy * f(inputs)) with respect to all inputs."""
    inputs = [short(x).requires_grad_() for x in inputs]
    y = f(*inputs)
    dy = short(torch.randn_like(y))
    grads = torch.autograd.grad(y, inputs, dy)
    return {
        "op": op, "attrs": attrs, "inputs": [numbers(x.detach()) for x in inputs], "dy": numbers(dy),
        "y": numbers(y.detach()), "grads": [numbers(g) for g in grads], **more,
    }


def conv(f, op, x, w, stride, padding, dilation, groups, **more):
    n = len(x) - 2
    attrs = {"strides": [stride] * n, "pads": [padding] * 2 * n, "dilations": [dilation] * n, "group": groups}
    if "output_padding" in more:
        attrs["output_padding"] = [more["output_padding"]] * n
    outputs = w[0] if op == "Conv" else w[1] * groups
    inputs = [torch.randn(x), torch.randn(w), torch.randn(outputs)]
    return case(op, attrs, inputs, lambda x, w, b: f(x, w, b, stride=stride, padding=padding, dilation=dilation, groups=groups, **more))


def pool(f, op, x, kernel, stride, padding, ceil, **more):
    attrs = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [padding] * 4, "ceil_mode": int(ceil)}
    attrs.update({k: int(v) for k, v in more.items()})
    return case(op, attrs, [torch.randn(x)], lambda x: f(x, kernel, stride, padding, ceil_mode=ceil, **more))


def batch_norm(x, momentum):
    channels = x[1]
    mean, var = short(torch.randn(channels)), short(torch.rand(channels) + 0.5)
    before = [numbers(mean), numbers(var)]
    inputs = [torch.randn(x) * 3 + 5, torch.randn(channels), torch.randn(channels)]
    made = case("BatchNormalization", {"epsilon": 0.001, "momentum": momentum}, inputs,
                lambda x, w, b: F.batch_norm(x, mean, var, w, b, training=True, momentum=1 - momentum, eps=0.001))
    return {**made, "running": before, "new_running": [numbers(mean), numbers(var)]}


def main():
    torch.manual_seed(1)
    cases = [
        conv(F.conv1d, "Conv", (2, 3, 11), (4, 3, 3), 2, 1, 1, 1),
        conv(F.conv2d, "Conv", (2, 3, 8, 9), (4, 3, 3, 3), 1, 1, 1, 1),
        conv(F.conv2d, "Conv", (2, 4, 9, 8), (6, 2, 3, 3), 2, 1, 1, 2),
        conv(F.conv2d, "Conv", (2, 3, 9, 8), (3, 1, 3, 3), 1, 2, 2, 3),
        conv(F.conv2d, "Conv", (2, 3, 9, 9), (6, 1, 3, 3), 2, 1, 1, 3),
        conv(F.conv2d, "Conv", (2, 5, 6, 6), (4, 5, 1, 1), 2, 0, 1, 1),
        conv(F.conv2d, "Conv", (1, 8, 7, 6), (8, 8, 3, 3), 1, 1, 1, 1),
        conv(F.conv3d, "Conv", (1, 2, 5, 6, 5), (3, 2, 2, 2, 2), 2, 1, 1, 1),
        conv(F.conv_transpose2d, "ConvTranspose", (2, 3, 5, 6), (3, 4, 3, 3), 2, 1, 1, 1, output_padding=1),
        conv(F.conv_transpose2d, "ConvTranspose", (2, 4, 5, 4), (4, 2, 2, 2), 2, 0, 1, 2),
        pool(F.max_pool2d, "MaxPool", (2, 3, 8, 10), 2, 2, 0, False),
        pool(F.max_pool2d, "MaxPool", (2, 3, 9, 9), 3, 2, 1, True),
        pool(F.avg_pool2d, "AveragePool", (2, 3, 8, 9), 3, 2, 1, False, count_include_pad=True),
        pool(F.avg_pool2d, "AveragePool", (2, 3, 8, 9), 3, 2, 1, True, count_include_pad=False),
        batch_norm((4, 3, 5, 4), 0.9),
        batch_norm((8, 5, 1), 0.6),
        case("InstanceNormalization", {"epsilon": 0.01}, [torch.randn(2, 3, 4, 5), torch.randn(3), torch.randn(3)],
             lambda x, w, b: F.instance_norm(x, None, None, w, b, eps=0.01)),
    ]
    path = pathlib.Path(__file__).with_name("conv.json")
    path.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")


main()
