"""What ONNX Runtime makes of a model before it runs it."""
import collections
import math
import os
import tempfile

import onnx

import models
import run


def optimized(path, options):
    """Operators and constants of the optimised graph, subgraphs and functions included, and the bytes of its file."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "optimized.onnx")
        run.open_session(path, options, precise=False, optimized=out)  # as users open it
        model = models.load(out)
        ops = collections.Counter(_ops(model))
        return {"Ops": ops, "Constants": _constants(model), "Bytes": sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))}


def _constants(model):
    """Bytes of all tensors in model. Sparse initializers are dense in memory, and sparse again in the file alone."""
    sparse = model.graph.sparse_initializer
    expanded = sum(math.prod(s.dims) * onnx.numpy_helper.to_array(s.values).itemsize - _size(s.values) - _size(s.indices) for s in sparse)
    return sum(map(_size, models.tensors(model))) + expanded


def _size(tensor):
    """Bytes of tensor as raw_data; 0 for strings."""
    values = onnx.numpy_helper.to_array(tensor)
    name = onnx.TensorProto.DataType.Name(tensor.data_type)
    bits = 2 if name.endswith("INT2") else 4 if name.endswith(("INT4", "FLOAT4E2M1")) else 8 * values.itemsize
    return 0 if tensor.data_type == onnx.TensorProto.STRING else (values.size * bits + 7) // 8


def _ops(message):
    """The operator of every node in message, at any depth, with its domain where that is not the default."""
    if isinstance(message, onnx.NodeProto):
        default = message.domain in ("", "ai.onnx")
        yield message.op_type if default else f"{message.domain}.{message.op_type}"
    for field, value in message.ListFields():
        if field.message_type and field.message_type.full_name in models.CARRIERS:
            for child in value if field.is_repeated else [value]:
                yield from _ops(child)
