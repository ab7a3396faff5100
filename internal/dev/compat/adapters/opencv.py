"""OpenCV's dnn module on one thread."""
import cv2
import numpy as np

cv2.setNumThreads(1)


class Model:
    def __init__(self, path, feed):
        self.net = cv2.dnn.readNetFromONNX(path)
        self.names = self.net.getUnconnectedOutLayersNames()

    def run(self, feed):
        for name, array in feed.items():
            self.net.setInput(np.ascontiguousarray(array), name)
        outputs = self.net.forward(self.names)
        return dict(zip(self.names, outputs))
