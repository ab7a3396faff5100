"""The Python parts of the benchmark: peers with options, and comparison of outputs.

  quantize IN OUT OPS         quantize_dynamic, int8 per channel, of these operators
  zeros OUT                   one MatMul whose 1024x1024 weight is zero in nine of ten places
  equal A B                   fails unless both are bit-identical
  multiply                    for each size on stdin, the seconds of one product of float32 squares; first OpenBLAS's core
  models DIR TOOL OUT         a Markdown table of every model under DIR: ONNX Runtime and TOOL
"""
import ctypes, glob, os, subprocess, sys, time
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper

DTYPES = {"float": np.float32, "float16": np.float16, "double": np.float64, "int64": np.int64, "int32": np.int32,
          "int8": np.int8, "uint8": np.uint8, "bool": np.bool_}


def quantize(src, dst, ops):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(src, dst, per_channel=True, weight_type=QuantType.QInt8, op_types_to_quantize=ops.split(","))


def zeros(dst):
    rng = np.random.default_rng(0)
    w = rng.standard_normal((1024, 1024)).astype(np.float32)
    w[rng.random(w.shape) >= 0.1] = 0
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 1024])
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "zeros", [info("x")], [info("y")], [numpy_helper.from_array(w, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), dst)


def core():
    """The kernels that OpenBLAS reports, if numpy brings its own."""
    for lib in glob.glob(os.path.join(os.path.dirname(np.__file__), "..", "numpy.libs", "libscipy_openblas64_*")):
        name = ctypes.CDLL(lib).scipy_openblas_get_corename64_
        name.restype = ctypes.c_char_p
        return name().decode()
    return "an unknown core"


def multiply():
    print(core(), flush=True)
    rng, held = np.random.default_rng(0), {}
    for line in sys.stdin:
        n = int(line)
        if n not in held:
            held = {n: [rng.standard_normal((n, n), dtype=np.float32) for _ in range(3)]}
        a, b, c = held[n]
        start = time.perf_counter()
        np.matmul(a, b, out=c)
        print(time.perf_counter() - start, flush=True)


def feed(s, path, rng):
    out = {}
    for i, a in enumerate(s.get_inputs()):
        recorded = os.path.join(os.path.dirname(path), "test_data_set_0", f"input_{i}.pb")
        if os.path.exists(recorded):
            with open(recorded, "rb") as f:
                out[a.name] = numpy_helper.to_array(TensorProto.FromString(f.read()))
            continue
        shape = [d if isinstance(d, int) and d > 0 else (1 if j == 0 else 8) for j, d in enumerate(a.shape)]
        dt = DTYPES[a.type[7:-1]]
        out[a.name] = rng.standard_normal(shape).astype(dt) if np.dtype(dt).kind == "f" else rng.integers(0, 2, shape).astype(dt)
    return out


def run(path, x=None):
    s = session(path, 1)
    x = x or feed(s, path, np.random.default_rng(0))
    return x, s.run(None, {i.name: x[i.name] for i in s.get_inputs()})


def equal(a, b):
    x, ya = run(a)
    _, yb = run(b, x)
    assert all(np.array_equal(p, q) for p, q in zip(ya, yb)), "outputs differ"


def sqnr(ya, yb):
    worst = np.inf
    for p, q in zip(ya, yb):
        if not isinstance(p, np.ndarray) or p.dtype.kind != "f" or p.shape != getattr(q, "shape", None):
            continue
        p, q = p.astype(np.float64), q.astype(np.float64)
        noise = ((p - q) ** 2).sum()
        if noise > 0:
            worst = min(worst, 10 * np.log10((p ** 2).sum() / noise))
    return worst


def evaluate(src, dst, x, ref):
    """Size ratio and lowest SQNR of dst, or what is wrong with it."""
    ratio = os.path.getsize(dst) / os.path.getsize(src)
    if ref is None:
        return f"{ratio:.3f}", ""
    try:
        _, y = run(dst, x)
    except Exception:
        return f"{ratio:.3f}", "does not run"
    db = sqnr(ref, y)
    return f"{ratio:.3f}", "exact" if np.isinf(db) else f"{db:.1f}"


def models(folder, tool, out):
    os.makedirs(out, exist_ok=True)
    print("## Real models\n")
    print("Size ratio and lowest output SQNR in dB. ONNX Runtime: `quantize_dynamic`, int8 per channel, all its operators, and with MatMul and Gemm")
    print("alone; mcompress: the same operators (`dynamic-int8`), and `weight-int8`. The source does not run in ONNX Runtime where no SQNR is given.\n")
    print("| model | ORT default | dB | ORT MatMul, Gemm | dB | dynamic-int8 | dB | weight-int8 | dB |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    paths = sorted(os.path.join(d, "model.onnx") for d, _, fs in os.walk(folder) if "model.onnx" in fs)
    for src in paths:
        try:
            x, ref = run(src)
        except Exception:
            x, ref = None, None
        cells = []
        for ops in (None, "MatMul,Gemm"):
            dst = os.path.join(out, "theirs.onnx")
            code = f"import sys\nfrom onnxruntime.quantization import QuantType, quantize_dynamic\nquantize_dynamic({src!r}, {dst!r}, per_channel=True, weight_type=QuantType.QInt8, op_types_to_quantize={ops.split(',') if ops else None!r})"
            p = subprocess.run([sys.executable, "-c", code], capture_output=True)
            cells += evaluate(src, dst, x, ref) if p.returncode == 0 else ("**fails**", "")
        for method in ("dynamic-int8", "weight-int8"):
            dst = os.path.join(out, "ours.onnx")
            p = subprocess.run([tool, "quantize", src, "-o", dst, "--method", method, "--report", "none", "--no-verify", "--quiet"], capture_output=True)
            cells += evaluate(src, dst, x, ref) if p.returncode == 0 else ("**fails**", "")
        print(f"| {os.path.basename(os.path.dirname(src))} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
