"""Tensors: every element type as raw_data and as typed field, and the odd shapes."""
import numpy as np
import onnx
from onnx import TensorProto, helper

RESTYLED = ("tensors_typed", "tensors_raw")

SHAPE = (3, 5)  # an odd number of elements, so that packed types end within a byte
COUNT = 15

# Element type → bits. A complete list: a type that ONNX adds makes models() fail until it is entered here.
BITS = {
    "FLOAT": 32, "UINT8": 8, "INT8": 8, "UINT16": 16, "INT16": 16, "INT32": 32, "INT64": 64, "BOOL": 8,
    "FLOAT16": 16, "DOUBLE": 64, "UINT32": 32, "UINT64": 64, "COMPLEX64": 64, "COMPLEX128": 128, "BFLOAT16": 16,
    "FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8, "FLOAT8E5M2": 8, "FLOAT8E5M2FNUZ": 8, "FLOAT8E8M0": 8,
    "UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2, "FLOAT6E2M3": 6, "FLOAT6E3M2": 6,
}

# Typed field → its types, and how many entries COUNT elements take there.
TYPED = {
    "float_data": {"FLOAT": COUNT, "COMPLEX64": 2 * COUNT},
    "double_data": {"DOUBLE": COUNT, "COMPLEX128": 2 * COUNT},
    "int64_data": {"INT64": COUNT},
    "uint64_data": {"UINT32": COUNT, "UINT64": COUNT},
    "string_data": {"STRING": COUNT},
    "int32_data": {"UINT4": 8, "INT4": 8, "FLOAT4E2M1": 8, "UINT2": 4, "INT2": 4}
    | dict.fromkeys(
        ("UINT8", "INT8", "UINT16", "INT16", "INT32", "BOOL", "FLOAT16", "BFLOAT16", "FLOAT6E2M3", "FLOAT6E3M2")
        + ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0"),
        COUNT,
    ),
}


# Types that Identity does not take at opset 26, and one that does not exist.
UNUSED = (TensorProto.FLOAT6E2M3, TensorProto.FLOAT6E3M2, 77)


def models():
    raw = [_raw(name) for name in _numeric()]
    typed = [_typed(field, name, n) for field, types in TYPED.items() for name, n in types.items()]
    for tensor in raw + typed:
        yield f"tensor_{tensor.name}", _model([tensor])
    yield "tensors_raw", _model(raw)
    yield "tensors_typed", _model(typed)
    yield "tensor_shapes", _model(list(_shapes()))
    yield "tensor_strings", _model([_strings()])
    yield "tensor_presence", _model(list(_presence()))
    yield "tensor_text", _model([_text()])
    yield "tensor_negative_dim", _model([TensorProto(name="w", data_type=1, dims=[-1, 2], raw_data=bytes(8))])
    yield "tensor_unknown_type", _model([TensorProto(name="w", data_type=77, dims=[2], raw_data=bytes(2))])


def _numeric():
    names = [n for n in TensorProto.DataType.keys() if n not in ("UNDEFINED", "STRING")]
    missing = set(names) ^ set(BITS)
    if missing:
        raise ValueError(f"element types without a size here: {missing}")
    return names


def _model(tensors):
    """A graph that hands its initializers through, as far as it can."""
    outputs = [t for t in tensors if t.data_type not in UNUSED]
    nodes = [helper.make_node("Identity", [t.name], [f"{t.name}_out"]) for t in outputs]
    infos = [helper.make_tensor_value_info(f"{t.name}_out", t.data_type, list(t.dims)) for t in outputs]
    graph = helper.make_graph(nodes, "tensors", [], infos, initializer=tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=onnx.IR_VERSION)


def _raw(name):
    size = -(-COUNT * BITS[name] // 8)
    payload = np.random.default_rng(BITS[name]).integers(0, 256, size, np.uint8)
    if name == "BOOL":
        payload &= 1
    tensor = TensorProto(name=f"raw_{name}", data_type=TensorProto.DataType.Value(name), dims=SHAPE)
    if BITS[name] == 6:
        payload[-1] &= 3  # the checker requires zero padding of these types
    tensor.raw_data = payload.tobytes()
    return tensor


def _typed(field, name, entries):
    tensor = TensorProto(name=f"typed_{name}", data_type=TensorProto.DataType.Value(name), dims=SHAPE)
    getattr(tensor, field).extend(_entries(field, name, entries))
    return tensor


def _entries(field, name, n):
    """Entries of every varint length, with the extremes of the type among them."""
    if field == "string_data":
        return [b"", "Gr\u00f6\u00dfe".encode(), b"\x00\xff", *(b"s%d" % i for i in range(n - 3))]
    if field in ("float_data", "double_data"):
        return [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45 if field == "float_data" else 5e-324, *(i / 8 for i in range(n - 6))]
    bits = 8 if BITS[name] < 6 else BITS[name]  # packed types fill whole bytes
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if name in ("INT8", "INT16", "INT32", "INT64") else (0, (1 << bits) - 1)
    if name == "BOOL":
        high = 1
    return [low, high, *(min(high, 1 << i) for i in range(n - 2))]


def _shapes():
    """A scalar, empty tensors in several spellings, a long shape, and dims beyond one byte."""
    yield helper.make_tensor("scalar", TensorProto.FLOAT, [], [2.5])
    yield TensorProto(name="scalar_raw", data_type=TensorProto.INT64, raw_data=bytes(8))
    yield TensorProto(name="empty_typed", data_type=TensorProto.FLOAT, dims=[0])
    yield TensorProto(name="empty_raw", data_type=TensorProto.FLOAT, dims=[3, 0, 2], raw_data=b"")
    yield TensorProto(name="empty_int4", data_type=TensorProto.INT4, dims=[0, 7], raw_data=b"")
    yield TensorProto(name="empty_string", data_type=TensorProto.STRING, dims=[0])
    yield TensorProto(name="long_shape", data_type=TensorProto.UINT8, dims=[1] * 12 + [300], raw_data=bytes(300))


def _strings():
    items = [b"", b"\xff\xfe not utf-8", "\u03b1\u03b2\u03b3".encode(), b"x" * 200]
    return TensorProto(name="texts", data_type=TensorProto.STRING, dims=[2, 2], string_data=items)


def _presence():
    """Fields that are there and hold their default: proto2 keeps them apart from absent ones."""
    yield TensorProto(name="both", data_type=1, dims=[1], raw_data=b"", float_data=[1.0])
    yield TensorProto(name="location", data_type=1, dims=[1], float_data=[1.0], data_location=TensorProto.DEFAULT)
    yield TensorProto(name="doc", data_type=1, dims=[1], float_data=[1.0], doc_string="")
    yield TensorProto(name="segment", data_type=1, dims=[2], float_data=[1, 2], segment=TensorProto.Segment(begin=0, end=2))
    yield TensorProto(name="segment_empty", data_type=1, dims=[1], float_data=[1], segment=TensorProto.Segment())


def _text():
    """All fields of a tensor besides its elements."""
    tensor = helper.make_tensor("w\u00eb\u0131ght/\u91cd\u307f:0", TensorProto.FLOAT, [1], [1.0])
    tensor.doc_string = "line one\nline two \u2014 \U0001f9ee"
    tensor.metadata_props.add(key="k", value="")
    tensor.metadata_props.add(key="", value="v")
    return tensor
