"""tract, which runs on one thread."""
import numpy as np
import tract

TYPES = {"float": "f", "int": "i", "uint": "u"}


class Model:
    def __init__(self, path, feed):
        model = tract.onnx().load(path)
        self.inputs = [model.input_name(i) for i in range(model.input_count())]
        for i, name in enumerate(self.inputs):
            model.set_input_fact(i, _fact(feed[name]))
        self.names = [model.output_name(i) for i in range(model.output_count())]
        self.runnable = model.into_model().into_runnable()

    def run(self, feed):
        outputs = self.runnable.run([np.ascontiguousarray(feed[name]) for name in self.inputs])
        return {name: o.to_numpy() for name, o in zip(self.names, outputs)}


def _fact(array):
    """A type and shape in tract's notation, such as 1,3,8,8,f32."""
    name = array.dtype.name
    word = name.rstrip("0123456789")
    return ",".join([*map(str, array.shape), TYPES.get(word, word) + name[len(word):]])
