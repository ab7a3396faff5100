"""Models that together use every type, field and encoding of the format, so that open → save can be tried on each.

They are made to be read, not to be run: most are valid, some (an unknown enum value, a negative dim) are only readable.
"""
import os

import generate_attributes
import generate_external
import generate_graphs
import generate_tensors
import wire

# How the richest models are written besides the way protobuf writes them.
STYLES = {
    "packed": wire.Style(packed=True),
    "unpacked": wire.Style(packed=False),
    "chunks": wire.Style(packed=True, chunks=3),
    "reversed": wire.Style(reverse=True),
    "overlong": wire.Style(overlong=True),
    "unknown": wire.Style(unknown=True),
    "split": wire.Style(split=True),
}


def generate(folder):
    """Writes the set into folder and returns the paths of its models, sorted."""
    os.makedirs(folder, exist_ok=True)
    files = {}
    for maker in (generate_tensors, generate_attributes, generate_graphs, generate_external):
        for name, model, *data in maker.models():
            files |= {f"{name}.onnx": model.SerializeToString()} | dict(*data)
            if name in maker.RESTYLED:
                files |= {f"{name}.{style}.onnx": wire.encode(model, how) for style, how in STYLES.items()}
    for name, data in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
    return sorted(os.path.join(folder, name) for name in files if name.endswith(".onnx"))
