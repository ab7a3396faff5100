"""Peers of pack: ZipNN, and the entropy of quantized values.

    zipnn [MODEL TYPE]...       a line for each: bytes of the tensors of a float type; bytes of ZipNN for the file; for them alone, and of zstd -19 for the rest; NaN if ZipNN aborts
    entropy [MODEL PACKED]...   a line for each: bytes of the packed integer tensors; order-0 entropy of their values
    compress IN TYPE OUT        a file by ZipNN
    decompress IN TYPE OUT
"""
import json, os, struct, subprocess, sys, zlib

TYPES = {"float32": 1, "float16": 10, "bfloat16": 16}


def tensors(graph):
    import onnx

    yield from graph.initializer
    for node in graph.node:
        for a in node.attribute:
            if a.type == onnx.AttributeProto.TENSOR:
                yield a.t
            for g in [a.g] * (a.type == onnx.AttributeProto.GRAPH) + list(a.graphs):
                yield from tensors(g)


def split(path, kind):
    """The content of the tensors of a type, and the rest of the file."""
    import numpy as np, onnx

    with open(path, "rb") as f:
        whole = f.read()
    model = onnx.load_from_string(whole)
    floats, rest, end = [], [], 0
    for t in tensors(model.graph):
        if t.data_type != TYPES[kind]:
            continue
        raw = t.raw_data or (np.array(t.float_data, "<f4").tobytes() if kind == "float32" else b"")
        at = whole.find(raw, end) if len(raw) >= 16 else -1
        if at < 0:
            at = whole.find(raw) if len(raw) >= 16 else -1
            if at < end:
                continue
        floats.append(raw)
        rest.append(whole[end:at])
        end = at + len(raw)
    rest.append(whole[end:])
    return b"".join(floats), b"".join(rest)


def zipnn(kind):
    import zipnn

    return zipnn.ZipNN(input_format="byte", bytearray_dtype=kind, threads=1)


def entropy(path, packed):
    import numpy as np

    with open(packed, "rb") as f:
        f.seek(-16, 2)
        f.seek(struct.unpack("<Q", f.read(8))[0])
        index = json.loads(zlib.decompress(f.read(struct.unpack("<4B4I", f.read(20))[4])))
    starts, at = [], 0  # of the contents of the records in the file
    for kind, _, raw, gap in index["chunks"]:
        starts.append(at + gap)
        at = at if kind == ord("S") else at + gap + raw
    total = least = 0
    with open(path, "rb") as f:
        for t in index["tensors"]:
            if t["type"] not in ("int8", "uint8", "int4", "uint4") or t["size"] < 64 << 10 or t["codec"] == "reference":
                continue
            f.seek(starts[t["chunk"]])
            values = np.frombuffer(f.read(t["size"]), np.uint8)
            if t["type"].endswith("4") or "nibbles" in t["codec"]:
                values = np.stack([values & 15, values >> 4])
            count = np.bincount(values.ravel(), minlength=256)
            p = count[count > 0] / values.size
            total, least = total + sum(20 + c[1] for c in index["chunks"][t["chunk"]:][:-(-t["size"] >> 20)]), least - values.size * float((p * np.log2(p)).sum()) / 8
    return total, least


def both(path, kind):
    """Bytes of the floats, of the compressed file, and of the floats compressed alone with the rest by zstd."""
    with open(path, "rb") as f:
        whole = size(f.read(), kind)
    floats, rest = split(path, kind)
    rest = subprocess.run(["zstd", "-19", "-c", "-q"], input=rest, capture_output=True, check=True).stdout
    return len(floats), whole, (size(floats, kind) if floats else 0) + len(rest)


def size(data, kind):
    """Bytes of ZipNN. NaN if it aborts, as it does for some files: thus a process of its own."""
    import zipnn as _  # once, and not in each process

    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, str(len(zipnn(kind).compress(data))).encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as f:
        text = f.read()
    _, status = os.waitpid(child, 0)
    return int(text) if status == 0 else float("nan")


def main(what, *args):
    if what in ("entropy", "zipnn"):
        for a, b in zip(args[::2], args[1::2]):
            print(*(entropy if what == "entropy" else both)(a, b))
        return
    path, kind, out = args
    with open(path, "rb") as f:
        data = f.read()
    with open(out, "wb") as f:
        f.write(getattr(zipnn(kind), what)(data))


main(*sys.argv[1:])
