"""The backend tests of the onnx package, as folders of models with their inputs and outputs."""
import json
import os
import warnings

import numpy as np
import onnx
from onnx import numpy_helper


def node_tests(folder):
    """Writes each node test to folder/<test>/ as the ONNX backend tests are laid out, and returns how many there are."""
    from onnx.backend.test.case.node import collect_testcases  # it computes every case

    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in collect_testcases(None):
            _write(case, os.path.join(folder, case.name))
            count += 1
    return count


def _write(case, folder):
    os.makedirs(folder)
    onnx.save(case.model, os.path.join(folder, "model.onnx"))
    with open(os.path.join(folder, "tolerance.json"), "w") as f:
        json.dump({"Relative": case.rtol, "Absolute": case.atol}, f)
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data = os.path.join(folder, f"test_data_set_{i}")
        os.makedirs(data)
        _write_values(data, "input", case.model.graph.input, inputs)
        _write_values(data, "output", case.model.graph.output, outputs)


def _write_values(folder, stem, infos, values):
    for i, (info, value) in enumerate(zip(infos, values)):
        with open(os.path.join(folder, f"{stem}_{i}.pb"), "wb") as f:
            f.write(_proto(info, value).SerializeToString())


def _proto(info, value):
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value)
    if kind == "optional_type":
        return numpy_helper.from_optional(value)
    if kind == "map_type":
        return numpy_helper.from_dict(value)
    return value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value))
