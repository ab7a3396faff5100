"""ONNX Runtime on one thread of the CPU."""
import onnxruntime


class Model:
    LEVEL = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL

    def __init__(self, path, feed):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = self.LEVEL
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.names = [o.name for o in self.session.get_outputs()]

    def run(self, feed):
        return dict(zip(self.names, self.session.run(self.names, feed)))
