"""Real classifiers, quantized in every way that ONNX Runtime's tools offer, and evaluated on held-out samples.

  split NAME FIXTURES SEEN KEPT    samples for calibration and search, and held-out ones, as .npz
  peers MODEL SEEN KEPT FOLDER     for each setting a line: bytes, accuracy, name; bytes 0 where it fails or does not run
  evaluate KEPT MODEL...              for each model a line: bytes, accuracy
"""
import contextlib, gzip, io, logging, os, sys, warnings
import numpy as np, onnx

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")
THREADS = 2
CALIBRATED = 128  # samples that ranges are taken from, as mcompress does
MNIST = {"mnist_cntk": (1, (1, 28, 28)), "mnist_cnn_max3": (255, (28, 28, 1)), "mnist_self_attention": (255, (28, 28, 1)),
         "mnist_sigmoid": (255, (28, 28)), "mnist_softmax_head": (255, (1, 28, 28))}


def idx(path, skip):
    with gzip.open(path) as f:
        return np.frombuffer(f.read(), np.uint8)[skip:]


def mnist(folder, divisor, shape):
    images = idx(f"{folder}/datasets/mnist/t10k-even-images-idx3-ubyte.gz", 16).reshape(-1, *shape)
    return (images / np.float32(divisor)).astype(np.float32), idx(f"{folder}/datasets/mnist/t10k-even-labels-idx1-ubyte.gz", 8).astype(np.int64)


def cifar(folder, name):
    rows = np.fromfile(f"{folder}/datasets/cifar10/sdp200.bin", np.uint8).reshape(-1, 3073)
    x, labels = rows[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32), rows[:, 0].astype(np.int64)
    if name == "mlperf_resnet8":
        return x.transpose(0, 2, 3, 1).copy(), labels
    return (x / 255 - np.float32([0.485, 0.456, 0.406]).reshape(3, 1, 1)) / np.float32(0.225), labels


def halves(feed):
    return [{k: v[i::2] for k, v in feed.items()} for i in (0, 1)]


def split(name, folder, seen, kept):
    """Every other sample. MiniLM: its train rows without labels, and all."""
    inputs = [i.name for i in session(model_of(name, folder), THREADS).get_inputs()]
    if name in MNIST:
        x, labels = mnist(folder, *MNIST[name])
        parts = halves({inputs[0]: x, "labels": labels})
    elif name.startswith("magika"):
        z = np.load(f"{folder}/datasets/magika/inputs.npz")
        labels = next(k for k in z.files if "label" in k)
        data = next(k for k in z.files if z[k].ndim == 2)
        parts = halves({inputs[0]: z[data], "labels": z[labels].astype(np.int64)})
    elif name.startswith("minilm"):
        z = np.load(f"{folder}/datasets/sms_spam/sms800_tokens.npz")
        feed = {k: z[k].astype(np.int64) for k in ("input_ids", "attention_mask")}
        feed["token_type_ids"] = np.zeros_like(feed["input_ids"])
        test = z["is_test"].astype(bool)
        parts = [{k: v[~test] for k, v in feed.items()}, feed | {"labels": z["labels"], "is_test": test}]
    else:
        x, labels = cifar(folder, name)
        parts = halves({inputs[0]: x.astype(np.float32), "labels": labels})
    for path, part in zip((seen, kept), parts):
        np.savez(path, **part)


def model_of(name, folder):
    return next(os.path.join(d, "model.onnx") for d, _, files in os.walk(f"{folder}/models") if os.path.basename(d) == name and "model.onnx" in files)


def batches(s, feed):
    """One sample after the other, as codes of activations differ with what else is in a run; but texts, which take long."""
    size = 20 if "attention_mask" in feed else 1
    names = [i.name for i in s.get_inputs()]
    for at in range(0, len(feed[names[0]]), size):
        yield {k: feed[k][at:at + size] for k in names}


def accuracy(path, kept):
    s, feed = session(path, THREADS), dict(np.load(kept))
    outs = [s.run(None, b)[0] for b in batches(s, feed)]
    labels = feed["labels"]
    if "is_test" not in feed:
        return (np.concatenate([o.reshape(-1, o.shape[-1]) for o in outs]).argmax(1) == labels).mean()
    mask, test, classes = feed["attention_mask"], feed["is_test"], np.unique(labels)
    e = (np.concatenate(outs) * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    centroids = np.stack([e[~test & (labels == c)].mean(0) for c in classes])
    cosines = e[test] @ (centroids / np.linalg.norm(centroids, axis=1, keepdims=True)).T
    return (classes[cosines.argmax(1)] == labels[test]).mean()


def evaluate(kept, *models):
    for path in models:
        print(os.path.getsize(path), accuracy(path, kept), flush=True)


def reader(model, seen):
    from onnxruntime.quantization import CalibrationDataReader
    s, feed = session(model, THREADS), dict(np.load(seen))
    step = max(1, len(next(iter(feed.values()))) // CALIBRATED)
    feed = {k: v[::step][:CALIBRATED] for k, v in feed.items()}

    class Reader(CalibrationDataReader):
        def __init__(self): self.rewind()
        def rewind(self): self.items = batches(s, feed)
        def get_next(self): return next(self.items, None)
    return Reader()


def dynamic(src, dst, seen, **o):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(src, dst, weight_type=QuantType.QInt8, **o)


def static(src, dst, seen, method, per_channel):
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
    ready = prepared(src, os.path.dirname(os.path.abspath(dst)))
    quantize_static(ready, dst, reader(ready, seen), quant_format=QuantFormat.QDQ, per_channel=per_channel, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8, calibrate_method=getattr(CalibrationMethod, method))


def nbits(src, dst, seen, **options):
    blocks(src, dst, **options)


def half(src, dst, seen):
    from onnxconverter_common import float16
    onnx.save(float16.convert_float_to_float16(onnx.load(src), keep_io_types=True), dst)


def settings():
    words = lambda **o: " ".join(k.replace("_", " ") for k, v in o.items() if v)
    for channel in (False, True):
        for narrow in (False, True):
            o = {"per_channel": channel, "reduce_range": narrow}
            yield f"quantize_dynamic {words(**o)}", dynamic, o
    for method in ("MinMax", "Entropy", "Percentile"):
        for channel in (False, True):
            yield f"quantize_static {method} {words(per_channel=channel)}", static, {"method": method, "per_channel": channel}
    for bits, sizes in ((4, (16, 32, 64, 128)), (8, (32, 128))):
        for size in sizes:
            for symmetric in (True, False):
                yield f"MatMulNBits {bits} bits block {size} {words(symmetric=symmetric)}", nbits, {"bits": bits, "block_size": size, "is_symmetric": symmetric}
    yield "float16", half, {}


def peers(model, seen, kept, folder):
    dst = os.path.join(folder, "peer.onnx")
    for name, run, o in settings():
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                run(model, dst, seen, **o)
            print(os.path.getsize(dst), accuracy(dst, kept), name.strip(), flush=True)
        except Exception:
            print(0, 0, name.strip(), flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
