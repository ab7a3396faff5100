"""Torch-Pruning's side of the section prune-channel. Networks are chains of Conv, MaxPool, Relu, Flatten and Gemm.

  samples OUT SHARED COUNT       training images of MNIST, spread evenly, with labels
  prune IN OUT SAMPLES FRACTION  removes channels by Taylor importance, compared in the whole network, in steps of 0.5 % until FRACTION of the multiply-accumulates is left
  count IN                       parameters and multiply-accumulates
"""
import gzip, sys
import numpy as np, onnx
from onnx import numpy_helper


def samples(out, shared, count):
    def read(name):
        with gzip.open(f"{shared}/fixtures/datasets/mnist/train-{name}-ubyte.gz") as f:
            b = f.read()
        return np.frombuffer(b, np.uint8, offset=4 + 4 * b[3])
    labels = read("labels-idx1")
    some = np.arange(int(count)) * len(labels) // int(count)
    np.savez(out, x=read("images-idx3").reshape(-1, 1, 28, 28)[some].astype(np.float32) / 255, labels=labels[some].astype(np.int64))


def layers(model):
    """The network, and the names of the weight and bias of each of its layers with whether the weight is transposed."""
    import torch
    from torch import nn
    weights, modules, names = {w.name: torch.tensor(numpy_helper.to_array(w)) for w in model.graph.initializer}, [], []
    for node in model.graph.node:
        options = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type in ("Conv", "Gemm"):
            w, b = (weights[name] for name in node.input[1:])
            turned = node.op_type == "Gemm" and not options.get("transB")
            w = w.T if turned else w
            layer = nn.Conv2d(w.shape[1], w.shape[0], w.shape[2:]) if node.op_type == "Conv" else nn.Linear(w.shape[1], w.shape[0])
            layer.weight.data, layer.bias.data = w.contiguous(), b
            names.append((layer, *node.input[1:], turned))
        else:
            layer = {"MaxPool": lambda: nn.MaxPool2d(tuple(options["kernel_shape"]), tuple(options["strides"])), "Relu": nn.ReLU, "Flatten": nn.Flatten}[node.op_type]()
        modules.append(layer)
    return nn.Sequential(*modules), names


def macs(net):
    """Each element of a weight has one for each place of the outputs."""
    import torch
    total, x = 0, torch.zeros(1, 1, 28, 28)
    for layer in net:
        x = layer(x)
        if hasattr(layer, "weight"):
            total += layer.weight.numel() * x[0, 0].numel()
    return total


def prune(src, dst, data, fraction):
    import torch, torch_pruning
    model, held = onnx.load(src), np.load(data)
    net, names = layers(model)
    x, y = torch.tensor(held["x"]), torch.tensor(held["labels"])
    pruner = torch_pruning.pruner.BasePruner(net, x[:1], torch_pruning.importance.GroupTaylorImportance(), global_pruning=True, pruning_ratio=1.0,
                                             iterative_steps=200, ignored_layers=[names[-1][0]])
    target = float(fraction) * macs(net)
    while macs(net) > target:
        net.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        pruner.step()
    for layer, weight, bias, turned in names:
        new = {weight: layer.weight.T if turned else layer.weight, bias: layer.bias}
        for w in model.graph.initializer:
            if w.name in new:
                w.CopyFrom(numpy_helper.from_array(new[w.name].detach().contiguous().numpy(), w.name))
    del model.graph.value_info[:]
    onnx.save(model, dst)


def count(src):
    net, _ = layers(onnx.load(src))
    print(sum(p.numel() for p in net.parameters()), macs(net))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
