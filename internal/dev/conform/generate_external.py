"""External data: one file and several, with and without offset and length, wherever a tensor can be."""
import onnx
from onnx import TensorProto, helper

import generate_graphs

RESTYLED = ()
PAGE = 4096


def models():
    yield "external_one", _model(_one()), {"external_one.bin": _payload(3 * PAGE)}
    yield "external_several", _model(_several()), {"external_a.bin": _payload(32), "parts/external b \u00e9.bin": _payload(64)}
    yield "external_attributes", _attributes(), {"external_attributes.bin": _payload(64)}
    yield "external_everywhere", _everywhere(), {"external_everywhere.bin": _payload(1 << 12)}
    yield "external_types", _model(_types()), {"external_types.bin": _payload(256)}


def _payload(n):
    return bytes(i * 7 % 251 for i in range(n))


def _tensor(name, location, elements=8, elem=TensorProto.FLOAT, **entries):
    tensor = TensorProto(name=name, data_type=elem, dims=[elements], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _model(tensors):
    nodes = [helper.make_node("Identity", [t.name], [f"{t.name}_out"]) for t in tensors]
    infos = [helper.make_tensor_value_info(f"{t.name}_out", t.data_type, list(t.dims)) for t in tensors]
    graph = helper.make_graph(nodes, "external", [], infos, initializer=tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=onnx.IR_VERSION)


def _one():
    """Ranges that touch, overlap, repeat and end the file, and an empty one."""
    at = "external_one.bin"
    return [
        _tensor("whole", at, 3 * PAGE // 4),
        _tensor("first", at, offset=0, length=32),
        _tensor("second", at, offset=32, length=32),
        _tensor("overlap", at, offset=16, length=32),
        _tensor("again", at, offset=32, length=32),
        _tensor("page", at, offset=PAGE, length=32),
        _tensor("last", at, offset=3 * PAGE - 32, length=32),
        _tensor("to_the_end", at, offset=3 * PAGE - 32),
        _tensor("empty", at, 0, offset=0, length=0),
    ]


def _several():
    """A file a tensor, one of them in a folder below, and keys that readers do not use."""
    summed = _tensor("summed", "external_a.bin", length=32, checksum="0" * 40, note="kept")
    return [summed, _tensor("below", "parts/external b \u00e9.bin", offset=16, length=32)]


def _types():
    at = "external_types.bin"
    return [
        _tensor("int4", at, 5, TensorProto.INT4, offset=0, length=3),
        _tensor("uint2", at, 5, TensorProto.UINT2, offset=3, length=2),
        _tensor("bool", at, 1, TensorProto.BOOL, offset=0, length=1),
        _tensor("bfloat16", at, 3, TensorProto.BFLOAT16, offset=8, length=6),
        _tensor("complex128", at, 2, TensorProto.COMPLEX128, offset=16, length=32),
        _tensor("int64", at, 2, TensorProto.INT64, offset=48, length=16),
    ]


def _attributes():
    """Constants whose value is in external data, in the graph, in a branch and in a function."""
    def constant(name, offset):
        value = _tensor(f"{name}_value", "external_attributes.bin", 2, offset=offset, length=8)
        return helper.make_node("Constant", [], [name], value=value)

    out = helper.make_tensor_value_info("b", TensorProto.FLOAT, [2])
    branches = {n: helper.make_graph([constant("b", o)], n, [], [out]) for n, o in (("then_branch", 0), ("else_branch", 8))}
    opsets = [helper.make_opsetid("", 26), helper.make_opsetid("example.custom", 1)]
    function = helper.make_function("example.custom", "Weigh", ["a"], ["r"], [constant("w", 16), helper.make_node("Mul", ["a", "w"], ["r"])], opsets[:1])
    cond = helper.make_node("Constant", [], ["cond"], value=helper.make_tensor("", TensorProto.BOOL, [], [True]))
    nodes = [cond, constant("c", 24), helper.make_node("If", ["cond"], ["i"], **branches), helper.make_node("Add", ["c", "i"], ["s"])]
    nodes.append(helper.make_node("Weigh", ["s"], ["y"], domain="example.custom"))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    graph = helper.make_graph(nodes, "attributes", [], [y])
    return helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=onnx.IR_VERSION)


def _everywhere():
    """The fullest model with all its numeric initializers outside, training graphs included."""
    model = generate_graphs.everywhere()
    graphs = [model.graph] + [g for t in model.training_info for g in (t.initialization, t.algorithm)]
    for i, tensor in enumerate(t for g in graphs for t in g.initializer):
        size = 4 * len(tensor.float_data)
        tensor.ClearField("float_data")
        outside = _tensor("", "external_everywhere.bin", offset=64 * i, length=size)
        tensor.external_data.extend(outside.external_data)
        tensor.data_location = outside.data_location
    return model
