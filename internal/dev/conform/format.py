"""ONNX's own description of its format and its own parser of the text form."""
import onnx
import onnx.parser


def schema():
    """Message → field → number, of every message of onnx.proto; nested ones as Outer.Inner."""
    found = {}
    pending = list(onnx.ModelProto.DESCRIPTOR.file.message_types_by_name.values())
    while pending:
        message = pending.pop()
        name = message.full_name.removeprefix("onnx.")
        found[name] = {field.name: field.number for field in message.fields}
        pending.extend(message.nested_types)
    return found


def element_types():
    """Numbers of TensorProto.DataType by name."""
    return dict(onnx.TensorProto.DataType.items())


def parse_text(text, path):
    """Writes the model that onnx.parser makes of the text."""
    with open(path, "wb") as f:
        f.write(onnx.parser.parse_model(text).SerializeToString())
