"""Runs models in one runtime: worker.py ADAPTER serves a JSON request a line on stdin with a JSON answer a line on stdout.

A request has Model and Inputs, and for a measurement of speed Baseline, another model, and Seconds. An answer has Outputs, Resident and
Memory, the growths of resident memory by loading and of its peak by loading and running; with a Baseline, the minimum times Time and BaselineTime; or Error, and Stage, load or run.
Libraries that print are sent to stderr, as stdout carries answers only.
"""
import base64
import importlib
import json
import os
import sys
import time

import numpy as np


def answer(adapter, request):
    feed = {i["Name"]: decoded(i) for i in request["Inputs"]}
    before = reset_peak()
    stage = "load"
    try:
        model = adapter.Model(request["Model"], feed)
        stage = "run"
        resident = max(0, status("VmRSS") - before)
        outputs = model.run(feed)
        peak = max(0, status("VmHWM") - before)
        result = {"Outputs": [encoded(name, array) for name, array in outputs.items()], "Resident": resident, "Memory": peak}
        if request.get("Baseline"):
            stage = "baseline"
            baseline = adapter.Model(request["Baseline"], feed)
            result["Time"], result["BaselineTime"] = interleaved([model, baseline], feed, request["Seconds"])
        return result
    except Exception as e:  # whatever a library raises is an answer, not the end of the worker
        return {"Stage": stage, "Error": f"{type(e).__name__}: {' '.join(str(e).split())}"}


def interleaved(models, feed, seconds):
    """The minimum time of a run of each model, in turn until the time is over, after one run of each."""
    best = [float("inf")] * len(models)
    end = None
    while end is None or time.perf_counter() < end:
        for i, model in enumerate(models):
            start = time.perf_counter()
            model.run(feed)
            if end:
                best[i] = min(best[i], time.perf_counter() - start)
        end = end or time.perf_counter() + seconds
    return best


def decoded(i):
    return np.frombuffer(base64.b64decode(i["Data"] or ""), i["DType"]).reshape(i["Shape"] or [])


def encoded(name, array):
    array = np.asarray(array)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"output {name!r} has type {array.dtype}")
    return {"Name": name, "DType": array.dtype.name, "Shape": list(array.shape), "Data": base64.b64encode(array.tobytes()).decode()}


def reset_peak():
    """Resets the peak of resident memory and returns the resident memory; both are 0 where the system does not have them."""
    try:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    except OSError:
        pass
    return status("VmRSS")


def status(field):
    try:
        with open("/proc/self/status") as f:
            return next(int(line.split()[1]) << 10 for line in f if line.startswith(field + ":"))
    except OSError:
        return 0


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    adapter = importlib.import_module("adapters." + sys.argv[1])
    for line in sys.stdin:
        answers.write(json.dumps(answer(adapter, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
