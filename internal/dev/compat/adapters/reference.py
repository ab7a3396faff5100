"""The reference evaluator of onnx."""
from onnx.reference import ReferenceEvaluator


class Model:
    def __init__(self, path, feed):
        self.evaluator = ReferenceEvaluator(path)
        self.names = self.evaluator.output_names

    def run(self, feed):
        return dict(zip(self.names, self.evaluator.run(None, feed)))
