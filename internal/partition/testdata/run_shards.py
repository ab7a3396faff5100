"""Runs shards by their manifest in ONNX Runtime and compares them with the whole model: MODEL MANIFEST INPUTS.npz"""

import json
import os
import sys

import numpy as np
import onnxruntime as ort


def session(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run(folder, manifest, inputs):
    made, sums = {"": inputs}, {}
    for segment in manifest["segments"]:
        for shard in segment["shards"]:
            given = {i["name"]: sums[i["name"]] if i.get("reduced") else made[i.get("from", "")][i["name"]] for i in shard["inputs"]}
            outputs = session(os.path.join(folder, shard["file"])).run(shard["outputs"], given)
            made[shard["file"]] = dict(zip(shard["outputs"], outputs))
        for reduction in segment.get("reductions", []):
            assert reduction["operation"] == "sum"
            name = reduction["name"]
            sums[name] = sum(made[shard["file"]][name] for shard in segment["shards"])
    results = {}
    for o in manifest["outputs"]:
        if o.get("reduced"):
            results[o["name"]] = sums[o["name"]]
        elif "concat" in o:
            results[o["name"]] = np.concatenate([made[f][o["name"]] for f in o["concat"]], o.get("axis", 0))
        else:
            results[o["name"]] = made[o["from"]][o["name"]]
    return results


model, path, npz = sys.argv[1:]
inputs = dict(np.load(npz))
with open(path) as f:
    manifest = json.load(f)
assert manifest["version"] == 1
got = run(os.path.dirname(path), manifest, inputs)
whole = session(model)
for o, want in zip(whole.get_outputs(), whole.run(None, inputs)):
    tolerance = 8 / 1024 if want.dtype == np.float16 else 2e-5
    error, largest = np.abs(got[o.name].astype(np.float64) - want).max(), np.abs(want).max()
    assert error <= tolerance * largest, f"{o.name}: max abs error {error} of {largest}"
print("ok", len(got))
