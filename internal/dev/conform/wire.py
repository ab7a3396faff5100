"""Protobuf encodings that no protobuf library writes but every one must read: a writer of our own that can choose.

A reader of ONNX files walks the wire format itself, so that each freedom of the format needs a file that uses it.
"""
import dataclasses
import struct

VARINT, FIXED64, LENGTH, START_GROUP, END_GROUP, FIXED32 = range(6)


@dataclasses.dataclass(frozen=True)
class Style:
    """How to write. The defaults are what protobuf libraries do."""

    packed: bool | None = None  # repeated numbers in one field, or a field each; None: as in the schema
    chunks: int = 1  # a packed field in so many pieces, which readers must join
    reverse: bool = False  # fields by falling number
    overlong: bool = False  # keys and lengths padded to more varint bytes than they need
    unknown: bool = False  # every message ends with fields that the schema does not have
    split: bool = False  # a message field in two pieces, which readers must merge


def varint(n, overlong=False):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    if overlong:
        out[-1] |= 128
        out += b"\x80\x00"
    return bytes(out)


def key(number, wire, style=Style()):
    return varint(number << 3 | wire, style.overlong)


def bytes_field(number, data, style=Style()):
    return key(number, LENGTH, style) + varint(len(data), style.overlong) + data


# One unknown field of every wire type, a group among them. The numbers are those of no ONNX message.
UNKNOWN = b"".join([
    key(20001, VARINT) + varint(-5),
    key(20002, FIXED64) + struct.pack("<d", 0.5),
    bytes_field(20003, "unbekannt größe".encode()),
    key(20004, FIXED32) + b"\x01\x02\x03\x04",
    key(20005, START_GROUP) + key(1, VARINT) + varint(7) + key(20005, END_GROUP),
    key(20001, VARINT) + varint(6),
])


def encode(message, style=Style()):
    """message in bytes; parsed, they are equal to it, but for unknown fields that style adds."""
    fields = sorted(message.ListFields(), key=lambda pair: pair[0].number, reverse=style.reverse)
    tail = UNKNOWN if style.unknown else b""
    return b"".join(_field(f, v, style) for f, v in fields) + tail


def _field(field, value, style):
    if field.message_type:
        children = value if field.is_repeated else [value]
        return b"".join(_message(field, child, style) for child in children)
    values = value if field.is_repeated else [value]
    if field.type in (field.TYPE_STRING, field.TYPE_BYTES):
        return b"".join(bytes_field(field.number, v.encode() if isinstance(v, str) else v, style) for v in values)
    return _numbers(field, values, style)


def _message(field, child, style):
    data = encode(child, style)
    if not style.split or field.is_repeated:
        return bytes_field(field.number, data, style)
    return b"".join(bytes_field(field.number, encode(half, style), style) for half in _halves(child))


def _halves(message):
    """Two messages that merge to message: its fields in turn."""
    halves = type(message)(), type(message)()
    for half in halves:
        half.CopyFrom(message)
    for i, (field, _) in enumerate(message.ListFields()):
        halves[i % 2].ClearField(field.name)
    return halves


def _numbers(field, values, style):
    packed = field.is_repeated and (field.is_packed if style.packed is None else style.packed)
    if not packed:
        wire = {field.TYPE_FLOAT: FIXED32, field.TYPE_DOUBLE: FIXED64}.get(field.type, VARINT)
        return b"".join(key(field.number, wire, style) + _number(field, v) for v in values)
    step = -(-len(values) // style.chunks)
    pieces = [values[i : i + step] for i in range(0, len(values), step)]
    return b"".join(bytes_field(field.number, b"".join(_number(field, v) for v in piece), style) for piece in pieces)


def _number(field, value):
    if field.type == field.TYPE_FLOAT:
        return struct.pack("<f", value)
    if field.type == field.TYPE_DOUBLE:
        return struct.pack("<d", value)
    return varint(value)
