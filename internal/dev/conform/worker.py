"""Serves requests about models: a JSON request a line on stdin, a JSON answer a line on stdout, until stdin ends.

A request is {"op": name, "args": {...}}, an answer {"result": ...} or {"error": "one line"}.
Libraries that print are sent to stderr, as stdout carries answers only.
"""
import importlib
import json
import os
import sys

# Operation → module of the function with that name; a module is imported at its first request.
OPERATIONS = {
    "versions": "models",
    "parses": "models",
    "check": "models",
    "equal": "equal",
    "run": "run",
    "compare": "run",
    "optimized": "optimized",
    "ort_dynamic": "ort_dynamic",
    "accuracy": "accuracy",
    "metric": "metric",
    "measured": "metric",
    "thinned": "metric",
    "sparse": "sparse_file",
    "sparse_files": "sparse_file",
    "memory": "memory",
    "generate": "generate",
    "node_tests": "node_tests",
    "operators": "operators",
    "schema": "format",
    "element_types": "format",
    "parse_text": "format",
    "pull_oras": "registries",
    "sign": "evidence",
    "verify_signature": "evidence",
    "model_card": "evidence",
    "hub_upload": "evidence",
    "cyclonedx": "evidence",
    "provenance": "evidence",
}


def answer(line):
    try:
        request = json.loads(line)
        op = request["op"]
        function = getattr(importlib.import_module(OPERATIONS[op]), op)
        return {"result": function(**request["args"])}
    except Exception as e:  # whatever a library raises is an answer, not the end of the worker
        return {"error": f"{type(e).__name__}: {' '.join(str(e).split())}"}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(answer(line), allow_nan=False) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
