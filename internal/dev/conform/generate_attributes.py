"""Attributes: every type, single and plural, Constant in all its forms, references inside functions."""
import onnx
from onnx import AttributeProto, TensorProto, helper

RESTYLED = ("attributes", "constants")
DOMAIN = "example.custom"


def models():
    yield "attributes", _model([_node("All", list(_attributes()))])
    for attribute in _attributes():
        yield f"attribute_{attribute.name}", _model([_node("One", [attribute])])
    yield "attribute_presence", _model([_node("Presence", list(_presence()))])
    yield "attribute_unknown_type", _unknown_type()
    yield "constants", _constants()
    yield "constant_text", _constant_text()
    yield "functions", _functions()


def _model(nodes, **fields):
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    opsets = [helper.make_opsetid("", 26), helper.make_opsetid(DOMAIN, 3)]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=opsets, ir_version=onnx.IR_VERSION, **fields)


def _node(op, attributes):
    node = onnx.NodeProto(op_type=op, domain=DOMAIN, name=f"node_{op}", input=["x"], output=["y"])
    node.attribute.extend(attributes)
    return node


def _tensor(name="t", n=4):
    return helper.make_tensor(name, TensorProto.FLOAT, [n], [i / 4 for i in range(n)])


def _raw(name):
    return helper.make_tensor(name, TensorProto.INT8, [3], b"\x01\xff\x7f", raw=True)


def _sparse(linear=True, name="values"):
    if linear:
        indices = helper.make_tensor("indices", TensorProto.INT64, [2], [1, 5])
    else:
        indices = helper.make_tensor("indices", TensorProto.INT64, [2, 2], [0, 1, 1, 2])
    return helper.make_sparse_tensor(_tensor(name, 2), indices, [2, 3])


def _graph(name):
    node = helper.make_node("Add", ["x", "inner"], ["z"])  # x is the outer graph's
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])
    return helper.make_graph([node], name, [], [z], initializer=[_tensor("inner", 2)])


def _type(elem=TensorProto.FLOAT):
    return helper.make_sequence_type_proto(helper.make_tensor_type_proto(elem, ["n", None, 3]))


def _attributes():
    A = AttributeProto
    yield A(name="float", type=A.FLOAT, f=-0.0)
    yield A(name="int", type=A.INT, i=-(1 << 63))
    yield A(name="string", type=A.STRING, s=b"\xff\x00bytes")
    yield A(name="tensor", type=A.TENSOR, t=_raw("t"))
    yield A(name="graph", type=A.GRAPH, g=_graph("inside"))
    yield A(name="sparse_tensor", type=A.SPARSE_TENSOR, sparse_tensor=_sparse())
    yield A(name="type_proto", type=A.TYPE_PROTO, tp=_type())
    yield A(name="floats", type=A.FLOATS, floats=[0.5, -1.5, 1e-45, 3.0])
    yield A(name="ints", type=A.INTS, ints=[0, 1, -1, 300, 1 << 62])
    yield A(name="strings", type=A.STRINGS, strings=[b"", b"a", "\u00e4".encode()])
    yield A(name="tensors", type=A.TENSORS, tensors=[_tensor("a"), _raw("b")])
    yield A(name="graphs", type=A.GRAPHS, graphs=[_graph("one"), _graph("two")])
    yield A(name="sparse_tensors", type=A.SPARSE_TENSORS, sparse_tensors=[_sparse(), _sparse(linear=False)])
    yield A(name="type_protos", type=A.TYPE_PROTOS, type_protos=[_type(), helper.make_optional_type_proto(_type())])


def _presence():
    """Defaults written out, lists left empty, and old files' attributes without a type."""
    A = AttributeProto
    yield A(name="zero", type=A.INT, i=0)
    yield A(name="absent", type=A.INT)
    yield A(name="empty", type=A.STRING, s=b"")
    yield A(name="none", type=A.INTS)
    yield A(name="unset", type=A.TENSORS, tensors=[TensorProto(), _raw("b")])
    yield A(name="untyped", i=3)
    yield A(name="undefined", type=A.UNDEFINED, i=3)
    yield A(name="documented", type=A.INT, i=3, doc_string="why three")
    yield A(name="", type=A.INT, i=1)


def _unknown_type():
    """An attribute type from a later ONNX: an enum value that this schema does not have."""
    attribute = AttributeProto.FromString(AttributeProto(name="later", i=1).SerializeToString() + b"\xa0\x01\x63")
    return _model([_node("Later", [attribute])])


def _constants():
    """Constant in each of its forms, each result used."""
    forms = {
        "value": _tensor("inside"), "value_float": 2.5, "value_floats": [1.0, 2.0], "value_int": -3, "value_ints": [1, -1],
        "value_string": "s", "value_strings": ["a", "\u00e9"], "sparse_value": _sparse(),
    }
    nodes = [helper.make_node("Constant", [], [f"c_{name}"], name=name, **{name: value}) for name, value in forms.items()]
    nodes.append(helper.make_node("Constant", [], ["c_indices2d"], sparse_value=_sparse(linear=False)))
    nodes.append(helper.make_node("Constant", [], ["c_raw"], value=_raw("")))
    uses = helper.make_node("Use", [n.output[0] for n in nodes], ["y"], domain=DOMAIN)
    return _model([*nodes, uses])


def _constant_text():
    """The fields of a Constant node besides its value: all of them must be written back."""
    nodes = [helper.make_node("Relu", ["x"], ["before"])]
    constant = helper.make_node("Constant", [], ["c"], name="n\u00f6de", doc_string="node doc", value=_tensor("tensor name"))
    constant.attribute[0].doc_string = "attribute doc"
    constant.attribute[0].t.doc_string = "tensor doc"
    constant.metadata_props.add(key="k", value="v")
    explicit = helper.make_node("Constant", [], ["d"], domain="ai.onnx", value=_raw("d"))
    empty = onnx.NodeProto(op_type="Constant", output=["e"], domain="", name="", doc_string="", attribute=constant.attribute)
    unused = helper.make_node("Constant", [], ["unused"], value_int=1)
    nodes += [constant, explicit, empty, unused, helper.make_node("Use", ["c", "d", "e"], ["y"], domain=DOMAIN)]
    return _model(nodes)


def _functions():
    """Functions with defaults, references, overloads, text, and a Constant inside."""
    opsets = [helper.make_opsetid("", 26)]
    reference = helper.make_node("LeakyRelu", ["a"], ["b"])
    reference.attribute.append(AttributeProto(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="slope"))
    constant = helper.make_node("Constant", [], ["c"])
    constant.attribute.append(AttributeProto(name="value", type=AttributeProto.TENSOR, ref_attr_name="weight"))
    body = [reference, constant, helper.make_node("Constant", [], ["k"], value=_tensor("k", 2)), helper.make_node("Sum", ["b", "c", "k"], ["d"])]
    default = helper.make_attribute("slope", 0.25)
    full = helper.make_function(DOMAIN, "Scaled", ["a"], ["d"], body, opsets, attributes=["weight"], attribute_protos=[default], doc_string="function doc")
    full.metadata_props.add(key="k", value="v")
    full.value_info.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [2]))
    plain = [helper.make_function(DOMAIN, "Same", ["a"], ["b"], [helper.make_node(op, ["a"], ["b"])], opsets, overload=o) for op, o in (("Relu", "positive"), ("Neg", "negative"))]
    call = helper.make_node("Scaled", ["x"], ["s"], domain=DOMAIN, weight=_tensor("w", 2))
    calls = [call] + [helper.make_node("Same", [i], [o], domain=DOMAIN, overload=v) for i, o, v in (("s", "p", "positive"), ("p", "y", "negative"))]
    return _model(calls, functions=[full, *plain])
