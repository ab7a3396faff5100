"""Peers on one model at many settings, and what their files and others are worth.

  evaluate MODEL SAMPLES FOLDER NAME=FILE...     one JSON line for each NAME
  peers MODEL SAMPLES FOLDER NAME=FILE...     then also one for each setting of ONNX Runtime's quantizers
  pruners MODEL SAMPLES FOLDER NAME=FILE...     then also one for each method of onnxsim and amount

A line holds the bytes, the size relative to the source, the lowest SQNR of an output in dB, the top-1 accuracy if there are labels, or the reason why there is no file; of pruners also the fraction of zeros in weights of MatMul, Gemm and Conv.
Samples to calibrate on are in SAMPLES.npz, held-out ones in SAMPLES.test.npz.
"""
import contextlib, json, logging, os, sys
import numpy as np, onnx
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantType, matmul_nbits_quantizer, quantize_dynamic, quantize_static

VERB, MODEL, SAMPLES, FOLDER = sys.argv[1:5]
SPAM = "minilm_l6_v2_vocab3086"
logging.disable()


def feeds(kind):
    """The samples one by one, as the model takes them."""
    held = np.load(SAMPLES + kind)
    inputs = session(MODEL, 1).get_inputs()
    rows = zip(*(held[i.name] for i in inputs))
    all = [{i.name: x if x.ndim == len(i.shape) else x[None] for i, x in zip(inputs, map(np.asarray, row))} for row in rows]
    return all, held["labels"] if "labels" in held.files else None


# The settings.

class Reader(CalibrationDataReader):
    def __init__(self):
        self.rows = iter(LEARN)

    def get_next(self):
        return next(self.rows, None)


def dynamic(dst, **options):
    quantize_dynamic(MODEL, dst, **options)


def static(dst, ready=True, **options):
    cache = os.path.join(FOLDER, f"{options['calibrate_method'].name}{options['extra_options']['ActivationSymmetric']}.json") if ready else None
    quantize_static(prepared(MODEL, FOLDER) if ready else MODEL, dst, Reader(), calibration_cache_path=cache, **options)


def nbits(dst, k_quant=False, **options):
    blocks(MODEL, dst, matmul_nbits_quantizer.KQuantWeightOnlyQuantConfig() if k_quant else None, **options)


INT8, UINT8 = QuantType.QInt8, QuantType.QUInt8


def settings():
    yield "dynamic", dynamic, {}
    for short, weights in (("s8", INT8), ("u8", UINT8)):
        for channels in (False, True):
            for narrow in (False, True):
                if (short, channels, narrow) != ("s8", False, False):
                    yield " ".join(["dynamic", short] + ["channels"] * channels + ["7 bits"] * narrow), dynamic, {"weight_type": weights, "per_channel": channels, "reduce_range": narrow}
    yield "static", static, {"ready": False}
    for method in CalibrationMethod.MinMax, CalibrationMethod.Entropy, CalibrationMethod.Percentile:
        for channels in (False, True):
            for symmetric in (False, True):
                yield " ".join(["static", method.name] + ["channels"] * channels + ["symmetric"] * symmetric), static, {
                    "calibrate_method": method, "per_channel": channels, "activation_type": INT8 if symmetric else UINT8, "weight_type": INT8,
                    "extra_options": {"ActivationSymmetric": symmetric, "CalibTensorRangeSymmetric": symmetric}}
    for bits in (4, 8):
        for size in (32, 128):
            for symmetric in (False, True):
                yield " ".join([f"int{bits} {size}"] + ["symmetric"] * symmetric), nbits, {"bits": bits, "block_size": size, "is_symmetric": symmetric}
    yield "int4 32 tables", nbits, {"bits": 4, "block_size": 32, "is_symmetric": False, "op_types_to_quantize": ("MatMul", "Gather")}
    yield "int4 32 k-quant", nbits, {"bits": 4, "block_size": 32, "k_quant": True}


def pruned(dst, method, **options):
    import onnxsim
    m = onnx.load(MODEL)
    weights = {w.name for w in m.graph.initializer}
    for i in [i for i in m.graph.input if i.name in weights]:  # of old models, which it takes for inputs of samples
        m.graph.input.remove(i)
    m.ir_version = max(m.ir_version, 4)
    m, _ = onnxsim.simplify(m)  # folds weights that are reshaped, which it does not prune
    m = getattr(onnxsim, f"apply_{method}_pruning")(m, calibration_data=LEARN, **options)
    onnx.save(m, dst)
    constants = {w.name: onnx.numpy_helper.to_array(w) for w in m.graph.initializer}
    of_layers = [constants[n.input[1]].ravel() for n in m.graph.node if n.op_type in ("MatMul", "Gemm", "Conv") and n.input[1] in constants]
    return {"zeros": float((np.concatenate(of_layers) == 0).mean())}


def pruners():
    for amount in ({"sparsity": 0.5}, {"sparsity": 0.6}, {"n": 2, "m": 4}):
        for method in ("wanda", "sparsegpt"):
            yield " ".join([method, *map(str, amount.values())]), pruned, {"method": method, **amount}


# What files are worth.

def weight(path):
    """The bytes of a model without doc strings: some exporters fill them with stack traces, which go with the nodes that a tool replaces."""
    m = onnx.load(path)
    for n in m.graph.node:
        n.ClearField("doc_string")
    return m.ByteSize()


def outputs(path):
    s = session(path, 1)
    names = {i.name for i in s.get_inputs()}
    return [s.run(None, {k: v for k, v in row.items() if k in names}) for row in (spoken(r) for r in HELD_OUT)]


def spoken(row):
    """A text without what fills it up."""
    if os.path.basename(SAMPLES) != SPAM:
        return row
    n = int(row["attention_mask"].sum())
    return {k: v[:, :n] for k, v in row.items()}


def floats(x):
    return isinstance(x, np.ndarray) and x.dtype.kind == "f"


def sqnr(want, got):
    """Over all samples, of the output where it is lowest; None where nothing differs."""
    lowest = np.inf
    for k in range(len(want[0])):
        signal = noise = 0.0
        for a, b in zip(want, got):
            if floats(a[k]):
                a, b = a[k].astype(np.float64), b[k].astype(np.float64)
                signal, noise = signal + (a ** 2).sum(), noise + ((a - b) ** 2).sum()
        if noise > 0:
            lowest = min(lowest, 10 * np.log10(max(signal, 1e-30) / noise))
    return None if np.isinf(lowest) else lowest


def right(got):
    """The top-1 accuracy; of texts, the fraction that is nearest to the centroid of their class."""
    if LABELS is None:
        return None
    if os.path.basename(SAMPLES) != SPAM:
        first = [g[0] if g[0].size == 1 else g[0].argmax() for g in got]
        return float(np.mean([int(np.ravel(f)[0]) == l for f, l in zip(first, LABELS)]))
    v = np.stack([g[0][0].mean(0) for g in got])
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    kind, test = LABELS[:, 0], LABELS[:, 1] == 1
    centers = np.stack([v[~test & (kind == k)].mean(0) for k in (0, 1)])
    return float((((v[test, None] - centers) ** 2).sum(2).argmin(1) == kind[test]).mean())


def why(e):
    return (str(e).strip().splitlines() or [type(e).__name__])[-1][:60]


def say(name, path, make=lambda: None):
    row = {"name": name}
    try:
        with contextlib.redirect_stdout(sys.stderr):  # they talk
            row |= make() or {}
    except Exception as e:
        row["why"] = "fails: " + why(e)
    else:
        try:
            row |= {"bytes": weight(path), "size": weight(path) / weight(MODEL)}
            got = outputs(path)
            row |= {"sqnr": sqnr(WANT, got), "right": right(got)}
        except Exception as e:
            row["why"] = "does not run: " + why(e)
    print(json.dumps(row), flush=True)


def main():
    for named in sys.argv[5:]:
        say(*named.rsplit("=", 1))
    for name, make, options in {"evaluate": tuple, "peers": settings, "pruners": pruners}[VERB]():
        path = os.path.join(FOLDER, "theirs.onnx")
        say(name, path, lambda: make(path, **options))


LEARN, _ = feeds(".npz")
HELD_OUT, LABELS = feeds(".test.npz")
WANT = outputs(MODEL)
main()
