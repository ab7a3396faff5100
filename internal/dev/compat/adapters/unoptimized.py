"""ONNX Runtime with each operator computed as it is in the file: neither fused nor folded."""
import onnxruntime

from adapters import ort


class Model(ort.Model):
    LEVEL = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
