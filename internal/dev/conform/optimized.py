"""What ONNX Runtime makes of a model before it runs it."""
import collections
import os
import tempfile

import onnx

import models
import run


def optimized(path, options):
    """Operators of the optimised graph, subgraphs and functions included, and the bytes of its file."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "optimized.onnx")
        run.open_session(path, options, precise=False, optimized=out)  # as users open it
        ops = collections.Counter(_ops(models.parse(out)))
        return {"Ops": ops, "Bytes": sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))}


def _ops(message):
    """The operator of every node in message, at any depth, with its domain where that is not the default."""
    if isinstance(message, onnx.NodeProto):
        default = message.domain in ("", "ai.onnx")
        yield message.op_type if default else f"{message.domain}.{message.op_type}"
    for field, value in message.ListFields():
        if field.message_type and field.message_type.full_name in models.CARRIERS:
            for child in value if field.is_repeated else [value]:
                yield from _ops(child)
