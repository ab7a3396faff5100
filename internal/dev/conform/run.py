"""Running models in ONNX Runtime and comparing the outputs of two of them."""
import base64
import os

import numpy as np
import onnxruntime as ort

import feeds
from cache import Cache, identity

LEVELS = {
    "": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}


def session(path, options):
    return precisely(lambda precise: open_session(path, options, precise))


def precisely(attempt):
    """What attempt(precise) returns, in precise mode where that works.

    8-bit products saturate in 16 bits on CPUs without VNNI, and figures would differ by machine: precise mode avoids
    that. ONNX Runtime 1.31.1 cannot load some QDQ models in it (int8 zero points with several uses: "Attempt to replace
    the existing tensor") and cannot run others (DequantizeLinear per channel without zero points, which it gives a scalar
    one); then nothing is precise.
    """
    try:
        return attempt(True)
    except Exception:  # whatever it was, the attempt without decides
        return attempt(False)


def open_session(path, options, precise, optimized=None):
    """A session on the CPU. optimized names a file for the graph that ONNX Runtime makes of the model."""
    o = ort.SessionOptions()
    o.intra_op_num_threads = options.get("Threads") or 1
    o.inter_op_num_threads = 1
    o.graph_optimization_level = LEVELS[options.get("Level", "")]
    o.log_severity_level = 4
    o.add_session_config_entry("session.x64quantprecision", "1" if precise else "0")
    if optimized:
        o.optimized_model_filepath = optimized
    return ort.InferenceSession(path, o, providers=["CPUExecutionProvider"])


def run(path, options):
    """The outputs of the model, tensors only, as name, dtype, shape and little-endian data in base64."""
    return precisely(lambda precise: _run(path, options, precise))


def _run(path, options, precise):
    s = open_session(path, options, precise)
    values, _ = first_that_runs(path, s, options)
    return [encoded(name, array) for name, array in flattened(s, values)]


def compare(a, b, options):
    """Both models on the same inputs: those on which a runs."""
    return precisely(lambda precise: _compare(a, b, options, precise))


def _compare(a, b, options, precise):
    names, feed, left = reference(a, options | {"Level": options.get("First") or options.get("Level", "")}, precise)
    second = open_session(b, options, precise)
    right = dict(pair for name, value in zip(names, second.run(names, as_declared(second, feed))) for pair in _flatten(name, value))
    if left.keys() != right.keys():
        raise ValueError(f"outputs {sorted(left)} and {sorted(right)}")
    return [{"Name": name} | errors(left[name], right[name]) for name in left]


def as_declared(s, feed):
    """The feed with its tensors in the types of the session's inputs: those of a model in float16 differ from its source's."""
    kinds = {i.name: feeds.ELEMENTS.get(i.type.removeprefix("tensor(").removesuffix(")")) for i in s.get_inputs()}
    floats = {name: kinds[name] for name, value in feed.items() if isinstance(value, np.ndarray) and value.dtype.kind == "f" and kinds.get(name)}
    return {name: value.astype(floats[name]) if name in floats else value for name, value in feed.items()}


references = Cache()


def reference(path, options, precise):
    """The names of the model's outputs, the feed on which it runs, and its outputs, flattened."""
    def compute():
        s = open_session(path, options, precise)
        values, feed = first_that_runs(path, s, options)
        flat = dict(flattened(s, values))
        size = sum(a.nbytes for a in [*flat.values(), *feed.values()] if isinstance(a, np.ndarray))
        return ([o.name for o in s.get_outputs()], feed, flat), size
    return references.get((identity(path), repr(sorted(options.items())), precise), compute)


def first_that_runs(path, s, options):
    """Outputs and feed of the first candidate that the session accepts; the first refusal if it accepts none."""
    refusal = None
    for feed in feeds.candidates(path, s.get_inputs(), options):
        try:
            return s.run(None, feed), feed
        except Exception as e:  # ONNX Runtime raises a class of its own for each status
            refusal = refusal or e
    raise refusal


def flattened(s, values):
    """Name and array of every tensor in the outputs; sequences and maps become several, an empty optional none."""
    return [pair for o, value in zip(s.get_outputs(), values) for pair in _flatten(o.name, value)]


def _flatten(name, value):
    if value is None:
        return
    if isinstance(value, dict):
        keys = sorted(value)
        yield f"{name}.keys", np.asarray(keys)
        yield f"{name}.values", np.asarray([value[k] for k in keys])
    elif isinstance(value, list):
        for i, v in enumerate(value):
            yield from _flatten(f"{name}[{i}]", v)
    else:
        yield name, np.asarray(value)


def encoded(name, array):
    text = array.dtype.kind in "OU"
    data = "\0".join(map(str, array.ravel())).encode() if text else np.ascontiguousarray(array).tobytes()
    return {
        "Name": name,
        "DType": "string" if text else array.dtype.name,
        "Shape": list(array.shape),
        "Data": base64.b64encode(data).decode(),
    }


def errors(want, got):
    """How far got is from want. Numbers travel as text, since JSON has no infinity."""
    if want.shape != got.shape or want.dtype != got.dtype:
        raise ValueError(f"{want.dtype}{list(want.shape)} and {got.dtype}{list(got.shape)}")
    if want.dtype.kind in "OU":
        same = bool(np.array_equal(want, got))
        return _figures(same, np.inf if same else -np.inf, 0 if same else np.inf, 1 if same else 0)
    same = np.ascontiguousarray(want).tobytes() == np.ascontiguousarray(got).tobytes()
    return _figures(same, *_distance(*(np.asarray(x, np.complex128 if x.dtype.kind == "c" else np.float64).ravel() for x in (want, got))))


def _figures(same, sqnr, largest, cosine):
    return {"Equal": same, "SQNR": str(float(sqnr)), "MaxErr": str(float(largest)), "Cosine": str(float(cosine))}


def _distance(want, got):
    """SQNR in dB, largest absolute error, cosine. Where want is not finite, got must be the same there."""
    finite = np.isfinite(want)
    if not np.array_equal(want[~finite], got[~finite], equal_nan=True) or not np.isfinite(got[finite]).all():
        return -np.inf, np.inf, 0
    want, got = want[finite], got[finite]
    noise = np.abs(got - want)
    signal_power, noise_power = np.vdot(want, want).real, np.vdot(noise, noise).real
    return _decibel(signal_power, noise_power), noise.max(initial=0), _cosine(want, got, signal_power)


def _decibel(signal, noise):
    if noise == 0:
        return np.inf
    return 10 * np.log10(signal / noise) if signal else -np.inf


def _cosine(want, got, signal_power):
    norm = np.sqrt(signal_power * np.vdot(got, got).real)
    return np.vdot(want, got).real / norm if norm else float(np.array_equal(want, got))
