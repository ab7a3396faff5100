"""What the benchmark of training needs of Python: models to train, samples, and weights side by side.

  mlp OUT UNITS...                    layers of so many units for images of 28x28, with Relu between them
  cnn OUT                             three convolutions for images of 3x32x32, each with Relu and a pool, and a layer of ten classes
  lenet5 OUT                          LeNet-5 as in Caffe, for images of 28x28: two convolutions of 5x5 with pools, and layers of 500 and 10 units
  samples OUT INPUT COUNT CLASSES SHAPE...
                                      an archive of normally distributed samples for this input, and of labels
  tokens OUT COUNT LENGTH             an archive of random token ids for MiniLM
  mobilenet OUT [SIZE CLASSES]        inverted residuals (Sandler et al., MobileNetV2, 2018) for images of 3x96x96 unless given, and a layer of ten classes
  difference A B                           the largest difference of a weight of A and B, and the largest weight of A
  digits OUT PART SHARED              images of MNIST: low (digits 0 to 4), high (5,000 of the digits 5 to 9), or test (test images of the latter)
  halves IN A B                       a file of CIFAR-10, every other image to each of two
  texts IN TRAIN                      the token ids of the SMS texts that embeddings are trained on
  spam IN MODEL...                    for each model, the fraction of test texts nearest to the right centroid of the train texts
  likeness IN DENSE MODEL...          for each model, that fraction, and the mean cosine similarity of the embeddings of test texts to those of DENSE
"""
import gzip
import sys
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper


def save(path, nodes, weights, shape, classes):
    info = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape])
    graph = helper.make_graph(nodes, "net", [info("x", shape)], [info("y", [classes])], [numpy_helper.from_array(w, name) for name, w in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def rectified(rng, *shape, fan):
    """He's weights for layers whose inputs are outputs of Relu."""
    return (rng.standard_normal(shape) * np.sqrt(2 / fan)).astype(np.float32)


def mlp(path, *units):
    rng, units = np.random.default_rng(0), [int(u) for u in units]
    nodes, weights, x = [helper.make_node("Flatten", ["x"], ["flat"])], {}, "flat"
    for i, (a, b) in enumerate(zip(units, units[1:])):
        last = i == len(units) - 2
        weights |= {f"fc{i}.weight": rectified(rng, a, b, fan=a), f"fc{i}.bias": np.zeros(b, np.float32)}
        nodes.append(helper.make_node("Gemm", [x, f"fc{i}.weight", f"fc{i}.bias"], ["y" if last else f"h{i}"], f"fc{i}"))
        x = f"a{i}"
        if not last:
            nodes.append(helper.make_node("Relu", [f"h{i}"], [x]))
    save(path, nodes, weights, [1, 28, 28], units[-1])


def cnn(path):
    rng, channels = np.random.default_rng(0), [3, 32, 64, 128]
    nodes, weights, x = [], {}, "x"
    for i, (a, b) in enumerate(zip(channels, channels[1:])):
        weights |= {f"conv{i}.weight": rectified(rng, b, a, 3, 3, fan=9 * a), f"conv{i}.bias": np.zeros(b, np.float32)}
        nodes += [helper.make_node("Conv", [x, f"conv{i}.weight", f"conv{i}.bias"], [f"h{i}"], f"conv{i}", kernel_shape=[3, 3], pads=[1] * 4),
                  helper.make_node("Relu", [f"h{i}"], [f"a{i}"]),
                  helper.make_node("MaxPool", [f"a{i}"], [f"p{i}"], kernel_shape=[2, 2], strides=[2, 2])]
        x = f"p{i}"
    weights |= {"fc.weight": rectified(rng, 10, 2048, fan=2048), "fc.bias": np.zeros(10, np.float32)}
    nodes += [helper.make_node("Flatten", [x], ["flat"]), helper.make_node("Gemm", ["flat", "fc.weight", "fc.bias"], ["y"], "fc", transB=1)]
    save(path, nodes, weights, [3, 32, 32], 10)


def lenet5(path):
    rng, shapes = np.random.default_rng(0), [(20, 1, 5, 5), (50, 20, 5, 5), (500, 800), (10, 500)]
    weights = {f"w{i}": rectified(rng, *s, fan=int(np.prod(s[1:]))) for i, s in enumerate(shapes)} | {f"b{i}": np.zeros(s[0], np.float32) for i, s in enumerate(shapes)}
    nodes, x = [], "x"
    for i in range(2):
        nodes += [helper.make_node("Conv", [x, f"w{i}", f"b{i}"], [f"c{i}"], f"conv{i}", kernel_shape=[5, 5]),
                  helper.make_node("MaxPool", [f"c{i}"], [f"p{i}"], kernel_shape=[2, 2], strides=[2, 2])]
        x = f"p{i}"
    nodes += [helper.make_node("Flatten", [x], ["flat"]), helper.make_node("Gemm", ["flat", "w2", "b2"], ["h"], "fc2", transB=1),
              helper.make_node("Relu", ["h"], ["a"]), helper.make_node("Gemm", ["a", "w3", "b3"], ["y"], "fc3", transB=1)]
    save(path, nodes, weights, [1, 28, 28], 10)


def samples(path, name, count, classes, *shape):
    rng = np.random.default_rng(1)
    np.savez(path, **{name: rng.standard_normal((int(count), *map(int, shape)), dtype=np.float32), "labels": rng.integers(0, int(classes), int(count))})


def tokens(path, count, length):
    shape = (int(count), int(length))
    np.savez(path, input_ids=np.random.default_rng(1).integers(0, 3086, shape), attention_mask=np.ones(shape, np.int64), token_type_ids=np.zeros(shape, np.int64))


def mobilenet(path, size=96, classes=10):
    size, classes = int(size), int(classes)
    rng, nodes, weights = np.random.default_rng(0), [], {}

    def conv(x, a, b, window, stride=1, group=1, act=True):
        i = len(weights)
        weights[f"w{i}"] = rectified(rng, b, a // group, window, window, fan=window * window * a // group)
        for name, value in (("scale", 1), ("bias", 0), ("mean", 0), ("var", 1)):
            weights[f"{name}{i}"] = np.full(b, value, np.float32)
        nodes.append(helper.make_node("Conv", [x, f"w{i}"], [f"c{i}"], f"conv{i}", kernel_shape=[window] * 2, strides=[stride] * 2, pads=[window // 2] * 4, group=group))
        nodes.append(helper.make_node("BatchNormalization", [f"c{i}", f"scale{i}", f"bias{i}", f"mean{i}", f"var{i}"], [f"n{i}"], f"norm{i}"))
        if not act:
            return f"n{i}"
        weights.setdefault("zero", np.float32(0)), weights.setdefault("six", np.float32(6))
        nodes.append(helper.make_node("Clip", [f"n{i}", "zero", "six"], [f"r{i}"], f"relu{i}"))
        return f"r{i}"

    x, a = conv("x", 3, 32, 3, 2), 32
    for expand, b, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for k in range(count):
            wide, y = a * expand, x
            if expand > 1:
                y = conv(y, a, wide, 1)
            y = conv(y, wide, wide, 3, stride if k == 0 else 1, wide)
            y = conv(y, wide, b, 1, act=False)
            if k > 0:
                nodes.append(helper.make_node("Add", [x, y], [f"sum{len(nodes)}"]))
                y = nodes[-1].output[0]
            x, a = y, b
    x = conv(x, a, 1280, 1)
    weights |= {"fc.weight": rectified(rng, classes, 1280, fan=1280), "fc.bias": np.zeros(classes, np.float32)}
    nodes += [helper.make_node("GlobalAveragePool", [x], ["pooled"]), helper.make_node("Flatten", ["pooled"], ["flat"]),
              helper.make_node("Gemm", ["flat", "fc.weight", "fc.bias"], ["y"], "fc", transB=1)]
    save(path, nodes, weights, [3, size, size], classes)


def idx(path):
    with gzip.open(path) as f:
        b = f.read()
    shape = [int.from_bytes(b[4 + 4 * i:8 + 4 * i], "big") for i in range(b[3])]
    return np.frombuffer(b[4 + 4 * b[3]:], np.uint8).reshape(shape)


def digits(path, part, shared):
    names = [f"{shared}/fixtures/datasets/mnist/{'t10k-even' if part == 'test' else 'train'}-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1")]
    x, y = map(idx, names)
    of = np.flatnonzero(y < 5 if part == "low" else y >= 5)[:5000 if part == "high" else None]
    np.savez(path, x=x[of][:, None].astype(np.float32) / 255, labels=y[of].astype(np.int64))


def weights(path):
    return {w.name: numpy_helper.to_array(w) for w in onnx.load(path).graph.initializer}


def difference(a, b):
    a, b = weights(a), weights(b)
    floats = [name for name, w in a.items() if w.dtype == np.float32]
    print(max(np.abs(a[n] - b[n]).max() for n in floats), max(np.abs(a[n]).max() for n in floats))


def halves(src, *dst):
    images = np.fromfile(src, np.uint8).reshape(-1, 3073)
    for i, path in enumerate(dst):
        images[i::2].tofile(path)


def messages(path):
    """All texts as the model takes them, their labels, and which are for the test."""
    z = np.load(path)
    feed = {name: z[name].astype(np.int64) for name in ("input_ids", "attention_mask")}
    return feed | {"token_type_ids": np.zeros_like(feed["input_ids"])}, z["labels"], z["is_test"].astype(bool)


def texts(src, train):
    feed, _, test = messages(src)
    np.savez(train, **{name: ids[~test] for name, ids in feed.items()})


def embeddings(path, feed):
    """Means of the tokens' vectors, of length 1. Texts of a batch are about as long, so that little of it is padding."""
    import onnxruntime as ort
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    mask, out = feed["attention_mask"], []
    order = mask.sum(1).argsort(kind="stable")
    for rows in np.array_split(order, len(order) // 40):
        long = mask[rows].sum(1).max()
        hidden = session.run(None, {k: v[rows, :long] for k, v in feed.items()})[0]
        out.append((hidden * mask[rows, :long, None]).sum(1) / mask[rows].sum(1, keepdims=True))
    e = np.concatenate(out)[order.argsort()]
    return e / np.linalg.norm(e, axis=1, keepdims=True)


def nearest(e, labels, test):
    """The fraction of test texts that are nearest to the right centroid of the train texts."""
    classes = np.unique(labels)
    centroids = np.stack([e[~test & (labels == c)].mean(0) for c in classes])
    cosines = e[test] @ (centroids / np.linalg.norm(centroids, axis=1, keepdims=True)).T
    return (classes[cosines.argmax(1)] == labels[test]).mean()


def spam(src, *models):
    feed, labels, test = messages(src)
    for path in models:
        print(nearest(embeddings(path, feed), labels, test))


def likeness(src, dense, *models):
    feed, labels, test = messages(src)
    d = embeddings(dense, feed)
    for path in models:
        e = embeddings(path, feed)
        print(nearest(e, labels, test), (e * d)[test].sum(1).mean())


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
