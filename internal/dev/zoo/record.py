#!/usr/bin/env python3
"""Answers requests, lines of JSON on stdin, with lines on stdout: runs a model in ONNX Runtime and writes its inputs and outputs as ONNX test data.

Request: {"Model": path, "Folder": of a run, "Inputs": [{"Name", "DType" (ONNX's number), "Shape", "Data" (base64)}]}
Answer: {"Error": why ONNX Runtime did not load or run the model}; without outputs then.
"""
import base64, json, os, sys
import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

onnxruntime.set_default_logger_severity(4)


def tensor(a):
    t = onnx.TensorProto(name=a["Name"], dims=a["Shape"] or [], data_type=a["DType"], raw_data=base64.b64decode(a["Data"] or ""))
    return t


def store(folder, name, t):
    with open(os.path.join(folder, name + ".pb"), "wb") as f:
        f.write(t.SerializeToString())


def record(q):
    os.makedirs(q["Folder"], exist_ok=True)
    inputs = [tensor(a) for a in q["Inputs"]]
    for i, t in enumerate(inputs):
        store(q["Folder"], f"input_{i}", t)
    o = onnxruntime.SessionOptions()
    o.intra_op_num_threads = 1
    s = onnxruntime.InferenceSession(q["Model"], o, providers=["CPUExecutionProvider"])
    for i, (x, info) in enumerate(zip(s.run(None, {t.name: numpy_helper.to_array(t) for t in inputs}), s.get_outputs())):
        if not isinstance(x, np.ndarray):
            raise TypeError(f"output {info.name} is no tensor")
        store(q["Folder"], f"output_{i}", numpy_helper.from_array(x, info.name))


for line in sys.stdin:
    try:
        record(json.loads(line))
        print(json.dumps({"Error": ""}), flush=True)
    except Exception as e:
        print(json.dumps({"Error": str(e).strip().split("\n")[0] or type(e).__name__}), flush=True)
