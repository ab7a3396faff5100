"""Graphs and models: subgraphs, sparse initializers, value types, text and metadata at each level, training, devices."""
import onnx
from onnx import TensorProto, helper

RESTYLED = ("everywhere", "subgraphs")
DOMAIN = "example.custom"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def models():
    yield "subgraphs", _model(_subgraphs())
    yield "sparse_initializers", _model(_sparse_initializers())
    yield "value_types", _model(_value_types())
    yield "names", _model(_names())
    yield "explicit_empty", _explicit_empty()
    yield "everywhere", everywhere()
    yield "metadata_twice", _metadata_twice()
    yield "optional_inputs", _model(_optional_inputs())
    yield "initializers_as_inputs", _initializers_as_inputs()
    yield "produced_twice", _model(_produced_twice())
    yield "unsorted", _model(_unsorted())
    yield "no_graph", onnx.ModelProto(ir_version=10, opset_import=[helper.make_opsetid("", 20)])
    yield "empty", onnx.ModelProto()
    yield "empty_graph", onnx.ModelProto(ir_version=10, graph=onnx.GraphProto())


def _model(graph, **fields):
    opsets = [helper.make_opsetid("", 26), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=onnx.IR_VERSION, **fields)


def _info(name, shape=(2, 2), elem=FLOAT):
    return helper.make_tensor_value_info(name, elem, shape)


def _weight(name, n=4):
    return helper.make_tensor(name, FLOAT, [2, n // 2], [i / 4 for i in range(n)])


def _branch(name, op, weight):
    """A graph that reads x of the graph around it, and a weight of its own."""
    node = helper.make_node(op, ["x", weight.name], [f"{name}_out"])
    return helper.make_graph([node], name, [], [_info(f"{name}_out")], initializer=[weight])


def _subgraphs():
    """If inside Loop inside If, with a weight in every scope, a Scan, and the same inner names in both branches."""
    then, other = _branch("then", "MatMul", _weight("w")), _branch("else", "Add", _weight("w"))
    inner = helper.make_node("If", ["keep_going"], ["chosen"], then_branch=then, else_branch=other)
    cond = helper.make_node("Identity", ["keep_going"], ["keep_out"])
    body = helper.make_graph(
        [inner, cond], "body", [_info("i", [], INT64), _info("keep_going", [], TensorProto.BOOL)], [_info("keep_out", [], TensorProto.BOOL), _info("chosen")]
    )
    trips = helper.make_node("Constant", [], ["trips"], value_int=2)
    loop = helper.make_node("Loop", ["trips", ""], ["stack"], body=body)
    add = helper.make_graph([helper.make_node("Add", ["state", "item"], ["sum"]), helper.make_node("Identity", ["sum"], ["each"])], "step",
                            [_info("state", [2]), _info("item", [2])], [_info("sum", [2]), _info("each", [2])])
    zero = helper.make_tensor("zero", FLOAT, [2], [0, 0])
    scan = helper.make_node("Scan", ["zero", "x"], ["total", "y"], body=add, num_scan_inputs=1, scan_input_axes=[0])
    return helper.make_graph([trips, loop, scan], "outer", [_info("x")], [_info("stack", (2, 2, 2)), _info("total", [2]), _info("y")], initializer=[zero])


def _sparse(name, indices, shape):
    values = helper.make_tensor(name, FLOAT, [2], [1.5, -2.5])
    return helper.make_sparse_tensor(values, indices, shape)


def _sparse_initializers():
    linear = helper.make_tensor("linear", INT64, [2], [0, 3])
    pairs = helper.make_tensor("pairs", INT64, [2, 2], [0, 1, 1, 0])
    raw = helper.make_tensor("raw", INT64, [2], (1).to_bytes(8, "little") + (2).to_bytes(8, "little"), raw=True)
    sparse = [_sparse("s1", linear, [2, 2]), _sparse("s2", pairs, [2, 2]), _sparse("s3", raw, [2, 2])]
    node = helper.make_node("Sum", ["s1", "s2", "s3", "d"], ["sum_of_sparse"])
    return helper.make_graph([node], "sparse", [], [_info("sum_of_sparse")], initializer=[_weight("d")], sparse_initializer=sparse)


def _value_types():
    """Inputs of every kind of type, with and without shape, and dims in all their spellings."""
    tensor = helper.make_tensor_type_proto(FLOAT, ["batch", None, 3, 0, -1])
    sequence, optional = helper.make_sequence_type_proto(tensor), helper.make_optional_type_proto(tensor)
    types = {
        "tensor": tensor, "no_shape": helper.make_tensor_type_proto(INT64, None), "scalar": helper.make_tensor_type_proto(INT64, []),
        "sequence": sequence, "optional": optional, "map": helper.make_map_type_proto(INT64, sequence),
        "sparse": helper.make_sparse_tensor_type_proto(FLOAT, [3, "n"]), "optional_sequence": helper.make_optional_type_proto(sequence), "unset": onnx.TypeProto(),
    }
    infos = [helper.make_value_info(name, t) for name, t in types.items()] + [onnx.ValueInfoProto(name="untyped")]
    opaque = onnx.ValueInfoProto(name="opaque")
    opaque.type.opaque_type.domain, opaque.type.opaque_type.name = "d", "n"
    infos[0].type.denotation = "IMAGE"
    infos[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    infos[1].type.tensor_type.SetInParent()
    node = helper.make_node("Use", list(types), ["y"], domain=DOMAIN)
    return helper.make_graph([node], "types", infos + [opaque], [_info("y", ["n"])], value_info=[_info("y", ["n"])])


def _names():
    names = ["\u8f38\u5165", "mit leer zeichen", "a/b:0", "x\"quoted'", "tab\there", "\U0001f600", "../escape", "n" * 3000]
    nodes = [helper.make_node("Relu", [a], [b], name=f"{a} \u2192 {b}"[:40]) for a, b in zip(names, names[1:])]
    return helper.make_graph(nodes, "gr\u00e4ph", [_info(names[0])], [_info(names[-1])])


def _explicit_empty():
    """Empty strings, which proto2 distinguishes from absent ones."""
    node = onnx.NodeProto(op_type="Relu", domain="", name="", doc_string="", overload="", input=["x"], output=["y"])
    graph = helper.make_graph([node], "g", [_info("x")], [_info("y")])
    graph.doc_string = ""
    graph.input[0].doc_string = ""
    graph.input[0].type.denotation = ""
    model = onnx.ModelProto(ir_version=10, producer_name="", producer_version="", domain="", model_version=0, doc_string="", graph=graph)
    model.opset_import.add(domain="", version=20)
    return model


def _optional_inputs():
    """Absent inputs in the middle and at the end, absent outputs."""
    nodes = [helper.make_node("Clip", ["x", "", "m"], ["c"]), helper.make_node("Clip", ["c", "m", ""], ["d"]), helper.make_node("Dropout", ["d", "", ""], ["y", ""])]
    return helper.make_graph(nodes, "optional", [_info("x")], [_info("y")], initializer=[helper.make_tensor("m", FLOAT, [], [1.0])])


def _initializers_as_inputs():
    """IR 3, where every initializer must be an input; one has a default only, one is unused."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "old", [_info("x"), _info("w"), _info("unused")], [_info("y")], initializer=[_weight("w"), _weight("unused")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=3)


def _produced_twice():
    """Two nodes write the name "c"; ONNX Runtime runs such models, although the checker rejects them."""
    constants = [helper.make_node("Constant", [], ["c"], value=_weight(n)) for n in ("first", "second")]
    uses = [helper.make_node("Add", [a, "c"], [b]) for a, b in (("x", "m"), ("m", "y"))]
    return helper.make_graph([constants[0], uses[0], constants[1], uses[1]], "twice", [_info("x")], [_info("y")])


def _unsorted():
    nodes = [helper.make_node("Relu", ["a"], ["y"]), helper.make_node("Relu", ["b"], ["a"]), helper.make_node("Relu", ["x"], ["b"])]
    return helper.make_graph(nodes, "unsorted", [_info("x")], [_info("y")])


def _metadata_twice():
    """A key that is there twice, which the checker rejects and files still have."""
    model = _model(_optional_inputs())
    for value in ("once", "twice"):
        model.metadata_props.add(key="license", value=value)
    return model


def everywhere():
    """Every message of the schema in one model, each with all the text it can carry."""
    graph = _subgraphs()
    graph.MergeFrom(_sparse_initializers())
    for m in (graph, *graph.node, *graph.initializer, *graph.input, *graph.output):
        m.doc_string = f"about {m.name or 'this'}"
        m.metadata_props.add(key="schl\u00fcssel", value="wert")
    annotation = graph.quantization_annotation.add(tensor_name="d")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="zero")
    model = _model(graph, producer_name="maker", producer_version="1", domain="org.example", model_version=-2, doc_string="m\u00f6del")
    model.metadata_props.add(key="license", value="none")
    model.opset_import.add(domain="ai.onnx.ml", version=5)
    _add_training(model)
    _add_devices(model)
    return model


def _add_training(model):
    training = model.training_info.add()
    training.initialization.CopyFrom(helper.make_graph([helper.make_node("Constant", [], ["w0"], value=_weight("w0"))], "init", [], [_info("w0")]))
    training.algorithm.CopyFrom(helper.make_graph([helper.make_node("Add", ["d", "step"], ["d_new"])], "update", [], [_info("d_new")], initializer=[_weight("step")]))
    training.initialization_binding.add(key="d", value="w0")
    training.update_binding.add(key="d", value="d_new")


def _add_devices(model):
    device = model.configuration.add(name="two", num_devices=2)
    device.device.extend(["cpu:0", "cpu:1"])
    use = model.graph.node[-1].device_configurations.add(configuration_id="two", pipeline_stage=0)
    sharding = use.sharding_spec.add(tensor_name="d", device=[0, -1])
    sharding.index_to_device_group_map.add(key=-1, value=[0, 1])
    axis = sharding.sharded_dim.add(axis=1)
    axis.simple_sharding.add(dim_value=2, num_shards=2)
    axis.simple_sharding.add(dim_param="n", num_shards=1)
