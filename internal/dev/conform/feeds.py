"""Inputs for a model: from files, from the test data next to it, or seeded random ones by its declared shapes."""
import glob
import os
import re
import zlib

import numpy as np
import onnx
from onnx import numpy_helper

ELEMENTS = {
    "float": np.float32, "double": np.float64, "float16": np.float16, "bool": np.bool_, "string": np.str_,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
}

# What random inputs try in turn until the model runs: the size of an undeclared axis and the bound of integers.
# Small first, as it is fast; sizes that strided and resizing networks accept after it; then tighter and wider integers.
LADDER = [(4, 2), (16, 2), (64, 2), (224, 2), (4, 1), (16, 1), (4, 10), (16, 100), (128, 1000)]


def candidates(path, inputs, options):
    """Yields feeds for the model at path in the order in which they should be tried."""
    files = options.get("Inputs") or ([] if options.get("Random") else test_data(path))
    if files:
        yield from_files(inputs, files)
        return
    for size, bound in [(options["Size"], options["Bound"] or 2)] if options.get("Size") else LADDER:
        yield {i.name: random(i, size, bound, options) for i in inputs}


def test_data(path):
    """The input_N.pb of test_data_set_0 next to the model, in order."""
    found = glob.glob(os.path.join(glob.escape(os.path.dirname(path)), "test_data_set_0", "input_*.pb"))
    return sorted(found, key=lambda f: int(re.search(r"(\d+)\.pb$", f)[1]))


def from_files(inputs, files):
    """.npz arrays go by name, .pb files by position among the inputs."""
    feed = {}
    for name in files:
        if name.endswith(".npz"):
            with np.load(name) as arrays:
                feed |= {i.name: arrays[i.name] for i in inputs if i.name in arrays}
    protos = [f for f in files if f.endswith(".pb")]
    return feed | {i.name: read_proto(f, i.type) for i, f in zip(inputs, protos)}


def read_proto(name, kind):
    with open(name, "rb") as f:
        data = f.read()
    if kind.startswith("seq("):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind.startswith("optional("):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))


def random(node, size, bound, options):
    """A value for one input. It depends on seed, name, shape and type only, not on the other inputs."""
    kind = re.fullmatch(r"(?:optional\()?(?:seq\()?tensor\((\w+)\)\)*", node.type)
    if not kind or kind[1] not in ELEMENTS:
        raise TypeError(f"input {node.name!r} has type {node.type}, which random inputs do not cover")
    generator = np.random.default_rng([options["Seed"], zlib.crc32(node.name.encode())])
    array = _array(generator, node, np.dtype(ELEMENTS[kind[1]]), _shape(node.shape, size, options), bound)
    return [array, array] if "seq(" in node.type else array


def _shape(declared, size, options):
    """Declared axes as they are, named ones by options, the batch axis by options, every other one by size."""
    dims, declared = options.get("Dims") or {}, declared or []
    open_axes = [i for i, d in enumerate(declared) if not (isinstance(d, int) and d > 0)]
    sizes = {i: dims.get(declared[i], size) for i in open_axes}
    # The first open axis is the batch, also after fixed ones, as in the [layers, batch, features] of recurrent states;
    # not after a fixed 1, which is the batch already.
    if open_axes and (open_axes[0] == 0 or declared[0] != 1):
        sizes[open_axes[0]] = dims.get(declared[open_axes[0]], options.get("Batch") or 1)
    return [sizes.get(i, d) for i, d in enumerate(declared)]


def _array(generator, node, dtype, shape, bound):
    if "mask" in node.name.lower() and dtype.kind in "iuf":
        return np.ones(shape, dtype)  # an attention mask of zeros makes every output NaN
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    numbers = generator.integers(0, bound, shape)
    if dtype.kind == "U":
        return numbers.astype(str).astype(object)
    return numbers.astype(dtype)
