"""Parsing and checking of model files, and the tensors inside a model."""
import os
from importlib.metadata import version

import onnx
from onnx.external_data_helper import load_external_data_for_tensor

from cache import Cache, identity


def versions():
    """The versions of the packages that requirements.txt pins."""
    return {name: version(name) for name in ("onnx", "onnxruntime", "numpy", "scipy", "ml_dtypes")}


def parses(path):
    parse(path)


checked = Cache()


def check(path, full):
    """Checks by path, so that the checker resolves external data itself."""
    error = checked.get((identity(path), full), lambda: (_rejection(path, full), 1 << 10))
    if error:
        raise error


def _rejection(path, full):
    try:
        onnx.checker.check_model(path, full_check=full)
    except Exception as e:  # the checker raises several classes
        return e


def parse(path):
    """The model as it is written, without its external data."""
    return onnx.load(path, format="protobuf", load_external_data=False)


def load(path):
    """The model with its external data in raw_data, wherever the tensor hangs.

    onnx.load itself visits neither functions nor training_info nor sparse tensors.
    """
    model = parse(path)
    folder = os.path.dirname(os.path.abspath(path))
    for tensor in tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            load_external_data_for_tensor(tensor, folder)
    return model


def tensors(message):
    """Every TensorProto in message, at any depth."""
    if isinstance(message, onnx.TensorProto):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type and field.message_type.full_name in CARRIERS:
            for child in value if field.is_repeated else [value]:
                yield from tensors(child)


def _carriers():
    """Names of the message types that can hold a TensorProto, so that the walk leaves the others out."""
    types = onnx.ModelProto.DESCRIPTOR.file.message_types_by_name.values()
    found = {onnx.TensorProto.DESCRIPTOR.full_name}
    while True:
        more = {t.full_name for t in types for f in t.fields if f.message_type and f.message_type.full_name in found}
        if more <= found:
            return found
        found |= more


CARRIERS = _carriers()
