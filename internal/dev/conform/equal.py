"""Equality of two model files as protobuf messages, and the first difference in words."""
import struct

import numpy as np
import onnx
from google.protobuf.unknown_fields import UnknownFieldSet

import models


def equal(a, b, payloads):
    """The first difference between the models, or None.

    payloads selects the value of a tensor:
      "loaded"      external data is read into raw_data, then messages must be equal;
      "referenced"  nothing is read, the references must be equal;
      "values"      as loaded, and typed fields count as the raw_data that they mean.
    Field presence and unknown fields count in each.
    """
    first, second = (_normalised(path, payloads) for path in (a, b))
    # Equal bytes are the common case, and the only fast comparison that sees presence and unknown fields.
    if first.SerializeToString(deterministic=True) == second.SerializeToString(deterministic=True):
        return None
    return difference(first, second, "model")


def _normalised(path, payloads):
    if payloads == "referenced":
        return models.parse(path)
    model = models.load(path)
    for tensor in models.tensors(model):
        tensor.ClearField("data_location")
        if payloads == "values":
            _to_raw(tensor)
    return model


def difference(a, b, where):
    """The first difference between two messages of one type, in field order, or None."""
    left, right = ({f.number: (f, v) for f, v in m.ListFields()} for m in (a, b))
    for number in sorted(left.keys() | right.keys()):
        field = (left.get(number) or right.get(number))[0]
        place = f"{where}.{field.name}"
        if number not in right:
            return f"{place}: only in the first"
        if number not in left:
            return f"{place}: only in the second"
        found = _field_difference(field, left[number][1], right[number][1], place)
        if found:
            return found
    if _unknown(UnknownFieldSet(a)) != _unknown(UnknownFieldSet(b)):
        return f"{where}: unknown fields differ"
    return None


def _field_difference(field, a, b, where):
    if not field.is_repeated:
        return _value_difference(field, a, b, where)
    if len(a) != len(b):
        return f"{where}: {len(a)} and {len(b)} elements"
    if not field.message_type:
        return _list_difference(field, a, b, where)
    for i, (x, y) in enumerate(zip(a, b)):
        found = difference(x, y, f"{where}[{i}]{_label(x)}")
        if found:
            return found
    return None


def _value_difference(field, a, b, where):
    if field.message_type:
        return difference(a, b, where)
    if _scalar(field, a) == _scalar(field, b):
        return None
    if isinstance(a, bytes) and max(len(a), len(b)) > 64:
        return f"{where}: {len(a)} and {len(b)} bytes, {_first_byte(a, b)}"
    return f"{where}: {a!r} and {b!r}"


def _list_difference(field, a, b, where):
    for i, (x, y) in enumerate(zip(a, b)):
        if _scalar(field, x) != _scalar(field, y):
            return f"{where}[{i}]: {x!r} and {y!r}"
    return None


def _scalar(field, value):
    """Floats by their bits: -0.0 is not 0.0, and a NaN is itself."""
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return struct.pack("<d", value)
    return value


def _first_byte(a, b):
    n = min(len(a), len(b))
    unequal = np.flatnonzero(np.frombuffer(a, np.uint8, n) != np.frombuffer(b, np.uint8, n))
    return f"first at {unequal[0] if len(unequal) else n}"


def _label(message):
    name = getattr(message, "name", "")
    return f" {name!r}" if name else ""


def _unknown(fields):
    """Unknown fields by number: protobuf gives no meaning to their order among each other."""
    found = {}
    for f in fields:
        data = _unknown(f.data) if isinstance(f.data, UnknownFieldSet) else f.data
        found.setdefault(f.field_number, []).append((f.wire_type, data))
    return found


# Which field holds the elements of a type when raw_data does not, and the little-endian element in raw_data.
_TYPED = {
    "float_data": {"FLOAT": "<f4", "COMPLEX64": "<f4"},
    "double_data": {"DOUBLE": "<f8", "COMPLEX128": "<f8"},
    "int64_data": {"INT64": "<i8"},
    "uint64_data": {"UINT64": "<u8", "UINT32": "<u4"},
    # Packed 4- and 2-bit types store one byte in each int32.
    "int32_data": {"INT32": "<i4"}
    | dict.fromkeys(("INT16", "UINT16", "FLOAT16", "BFLOAT16"), "<u2")
    | dict.fromkeys(
        ("INT8", "UINT8", "BOOL", "INT4", "UINT4", "INT2", "UINT2", "FLOAT4E2M1", "FLOAT8E8M0")
        + ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"),
        "<u1",
    ),
}
_FLOAT6 = (onnx.TensorProto.FLOAT6E2M3, onnx.TensorProto.FLOAT6E3M2)


def _to_raw(tensor):
    if not tensor.raw_data:
        tensor.ClearField("raw_data")  # an empty tensor has the same value with and without the field
    for name, elements in _TYPED.items():
        values = getattr(tensor, name)
        if not values:
            continue
        if tensor.data_type in _FLOAT6:
            tensor.raw_data = _pack6(values)
        else:
            element = elements[onnx.TensorProto.DataType.Name(tensor.data_type)]
            # Through the widest type of the field: NumPy refuses 300 as uint8, the format keeps its low byte.
            wide = np.asarray(values, {"f": element, "u": "<i8" if name == "int32_data" else element, "i": "<i8"}[element[1]])
            tensor.raw_data = wide.astype(element).tobytes()
        tensor.ClearField(name)


def _pack6(values):
    """6-bit elements as one little-endian bit stream: four in three bytes."""
    stream = sum((v & 63) << (6 * i) for i, v in enumerate(values))
    return stream.to_bytes((6 * len(values) + 7) // 8, "little")
