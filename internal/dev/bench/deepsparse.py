"""DeepSparse's side of `make bench-sparse`: deepsparse.py MODEL BATCH THREADS --runs RUNS --time SECONDSs [NAME=SIZE...]

Runs a model on random inputs, RUNS times or for so many seconds, whichever is longer, and prints the seconds to load it and of a run as JSON, under the names of `mcompress bench`.
"""
import json, statistics, sys, time
import numpy as np, onnx
from deepsparse import compile_model


def inputs(path, batch, sizes):
    """Normally distributed numbers; zeros and ones for token ids and masks."""
    graph, rng = onnx.load(path, load_external_data=False).graph, np.random.default_rng(0)
    constants = {w.name for w in graph.initializer}
    for i in graph.input:
        if i.name not in constants:
            t = i.type.tensor_type
            shape = [batch] + [d.dim_value or sizes[d.dim_param] for d in t.shape.dim[1:]]
            yield rng.standard_normal(shape).astype(np.float32) if t.elem_type == onnx.TensorProto.FLOAT else rng.integers(0, 2, shape)


def main(path, batch, threads, _, runs, __, seconds, *sizes):
    sizes = {name: int(n) for name, n in (s.split("=") for s in sizes)}
    feed = list(inputs(path, int(batch), sizes))
    start = time.perf_counter()
    engine = compile_model(path, batch_size=int(batch), num_cores=int(threads), input_shapes=[list(x.shape) for x in feed])
    load, times = time.perf_counter() - start, []
    for _ in range(3):
        engine.run(feed)
    start = time.perf_counter()
    while len(times) < int(runs) or time.perf_counter() - start < float(seconds.rstrip("s")):
        began = time.perf_counter()
        engine.run(feed)
        times.append(time.perf_counter() - began)
    print(json.dumps({"backend": "deepsparse", "load_seconds": load, "runs": len(times), "min_seconds": min(times), "median_seconds": statistics.median(times)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
