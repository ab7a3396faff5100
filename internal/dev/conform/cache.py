"""Results for models that several requests use, such as the source of many compressed models."""
import os
from collections import OrderedDict

LIMIT = 64 << 20  # bytes


class Cache:
    """The results used last, up to LIMIT bytes of arrays. Keys identify files by path, size and time of change."""

    def __init__(self):
        self.results = OrderedDict()
        self.bytes = 0

    def get(self, key, compute):
        """The result of compute(), which returns a value and its size in bytes, from an earlier call if there was one."""
        if key in self.results:
            self.results.move_to_end(key)
            return self.results[key][0]
        value, size = compute()
        if size <= LIMIT // 4:
            self.results[key] = value, size
            self.bytes += size
        while self.bytes > LIMIT:
            self.bytes -= self.results.popitem(last=False)[1][1]
        return value


def identity(path):
    """What identifies the content of a model: its file, and the files next to it that may hold external data or inputs."""
    folder = os.path.dirname(os.path.abspath(path))
    files = [(e.name, e.stat().st_mtime_ns, e.stat().st_size) for e in os.scandir(folder) if e.is_file() and not e.name.endswith(".onnx")]
    s = os.stat(path)
    return os.path.abspath(path), s.st_mtime_ns, s.st_size, s.st_ino, tuple(sorted(files))
