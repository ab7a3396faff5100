"""Writes the small models and data files that the tests of this package put to the worker: make.py FOLDER."""
import os
import sys

import numpy as np
import onnx
import scipy.sparse
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def main(folder):
    os.chdir(folder)
    weight = np.random.default_rng(1).standard_normal((32, 64)).astype(np.float32)
    save("mlp.onnx", mlp(weight))
    save("mlp_noisy.onnx", mlp(weight * np.float32(1.01)))
    save("mlp_external.onnx", external(mlp(weight), "mlp_external.bin"))
    save("mlp_lost.onnx", external(mlp(weight), "lost.bin"))
    os.remove("lost.bin")
    save("argmax.onnx", argmax())
    save("lookup.onnx", lookup(rows=1))
    save("halving.onnx", halving())
    save("mixed.onnx", mixed())
    recorded()
    np.savez("labelled.npz", x=np.eye(4, dtype=np.float64), y=np.array([0, 1, 2, 0]))
    scipy.sparse.save_npz("matrix.npz", scipy.sparse.csr_matrix([[0, 2.5, 0], [0, 0, -1]]))


def save(name, model):
    with open(name, "wb") as f:
        f.write(model.SerializeToString())


def info(name, elem, shape):
    return helper.make_tensor_value_info(name, elem, shape)


def model(nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializer=list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def mlp(weight):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Relu", ["m"], ["y"])]
    return model(nodes, [info("x", FLOAT, ["n", 32])], [info("y", FLOAT, ["n", 64])], [numpy_helper.from_array(weight, "w")])


def external(m, location):
    tensor = m.graph.initializer[0]
    with open(location, "wb") as f:
        f.write(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return m


def argmax():
    """A classifier whose scores are its inputs."""
    return model([helper.make_node("Identity", ["x"], ["y"])], [info("x", FLOAT, ["n", 4])], [info("y", FLOAT, ["n", 4])])


def lookup(rows):
    """Runs only on indices below rows."""
    table = numpy_helper.from_array(np.ones((rows, 4), np.float32), "table")
    return model([helper.make_node("Gather", ["table", "i"], ["y"])], [info("i", INT64, [3])], [info("y", FLOAT, [3, 4])], [table])


def halving():
    """Runs only where the open second axis is a multiple of 16."""
    shape = numpy_helper.from_array(np.array([0, -1, 16], np.int64), "shape")
    return model([helper.make_node("Reshape", ["x", "shape"], ["y"])], [info("x", FLOAT, ["n", "size"])], [info("y", FLOAT, None)], [shape])


def mixed():
    """Inputs and outputs of several kinds: text, a mask, a sequence."""
    nodes = [
        helper.make_node("Identity", ["text"], ["same"]),
        helper.make_node("Identity", ["attention_mask"], ["mask"]),
        helper.make_node("SequenceConstruct", ["f", "f"], ["pair"]),
    ]
    inputs = [info("text", STRING, [2]), info("attention_mask", INT64, [2]), info("f", FLOAT, [2])]
    pair = helper.make_tensor_sequence_value_info("pair", FLOAT, [2])
    return model(nodes, inputs, [info("same", STRING, [2]), info("mask", INT64, [2]), pair])


def recorded():
    """A model with a test data set next to it."""
    os.makedirs("recorded/test_data_set_0")
    save("recorded/model.onnx", argmax())
    with open("recorded/test_data_set_0/input_0.pb", "wb") as f:
        f.write(numpy_helper.from_array(np.array([[1, 2, 3, 4]], np.float32), "x").SerializeToString())
    np.savez("other.npz", x=np.array([[5, 6, 7, 8]], np.float32))


if __name__ == "__main__":
    main(sys.argv[1])
