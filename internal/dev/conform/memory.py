"""The memory that ONNX Runtime takes for a run: counted by an allocator that it is given, and as growth of a process.

Python's bindings register no allocators, so the C API is called: functions by their index in the table OrtApi, to which
versions only append (onnxruntime_c_api.h).
"""
import base64
import ctypes
import functools
import glob
import json
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

import models

VERSION = 17  # of the API: the oldest that has all of these
FUNCTIONS = {
    "GetErrorMessage": 2, "CreateEnv": 3, "CreateSession": 7, "Run": 9, "CreateSessionOptions": 10, "SetIntraOpNumThreads": 24,
    "CreateTensorWithDataAsOrtValue": 49, "CreateCpuMemoryInfo": 69, "ReleaseSession": 95, "ReleaseValue": 96,
    "AddSessionConfigEntry": 130, "RegisterAllocator": 176,
}

POINTER, SIZE, TEXT, INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_int
ALLOC = ctypes.CFUNCTYPE(POINTER, POINTER, SIZE)
FREE = ctypes.CFUNCTYPE(None, POINTER, POINTER)
INFO = ctypes.CFUNCTYPE(POINTER, POINTER)


def memory(path, inputs, resident):
    """Bytes allocated after loading; peak in addition of the first run, and of later ones, whose memory pattern is known; growth."""
    feed = {i["Name"]: _array(i) for i in inputs}
    counter = _counter()
    before = counter.live
    session = counter.open(path)
    try:
        held = counter.live - before
        outputs = [o.name for o in models.parse(path).graph.output]
        first, later, last = (counter.run(session, feed, outputs) for _ in range(3))
        if later != last:
            raise ValueError(f"the second run takes {later} bytes, the third one {last}")
    finally:
        counter.release("ReleaseSession", session)
    return {"Held": held, "First": first, "Later": later, "Resident": _growth_of_process(path, inputs) if resident else 0}


def _array(i):
    return np.frombuffer(base64.b64decode(i["Data"] or ""), dtype=np.dtype(i["DType"])).reshape(i["Shape"] or [])


@functools.cache
def _counter():
    return Counter()


class Allocator(ctypes.Structure):
    """OrtAllocator as of version 17."""

    _fields_ = [("version", ctypes.c_uint32), ("alloc", ALLOC), ("free", FREE), ("info", INFO)]


class Counter:
    """ONNX Runtime with an allocator that counts requested bytes that are not freed yet."""

    def __init__(self):
        self.live = self.most = 0
        self.sizes = {}
        self.libc = ctypes.CDLL(None)
        self.libc.aligned_alloc.restype, self.libc.aligned_alloc.argtypes = POINTER, [SIZE, SIZE]
        self.libc.free.argtypes = [POINTER]
        self.table = _table()
        self.place = self.create("CreateCpuMemoryInfo", (INT, 0), (INT, 0))  # a device allocator: no arena rounds sizes
        self.allocator = Allocator(VERSION, ALLOC(self._alloc), FREE(self._free), INFO(lambda _: self.place))
        self.env = self.create("CreateEnv", (INT, 4), (TEXT, b"memory"))
        self.call("RegisterAllocator", (POINTER, self.env), (POINTER, ctypes.addressof(self.allocator)))

    def _alloc(self, _, size):
        at = self.libc.aligned_alloc(64, -(-max(size, 1) // 64) * 64)
        self.sizes[at] = size
        self.live += size
        self.most = max(self.most, self.live)
        return at

    def _free(self, _, at):
        if at:
            self.live -= self.sizes.pop(at)
            self.libc.free(at)

    def call(self, name, *args):
        status = self._function(name, POINTER, args)(*(value for _, value in args))
        if status:
            raise RuntimeError(self._function("GetErrorMessage", TEXT, [(POINTER, status)])(status).decode())

    def create(self, name, *args):
        made = POINTER()
        self.call(name, *args, (POINTER, ctypes.addressof(made)))
        return made.value

    def release(self, name, thing):
        if thing:
            self._function(name, None, [(POINTER, thing)])(thing)

    def _function(self, name, result, args):
        return ctypes.CFUNCTYPE(result, *(kind for kind, _ in args))(self.table[FUNCTIONS[name]])

    def open(self, path):
        options = self.create("CreateSessionOptions")
        self.call("SetIntraOpNumThreads", (POINTER, options), (INT, 1))
        self.call("AddSessionConfigEntry", (POINTER, options), (TEXT, b"session.use_env_allocators"), (TEXT, b"1"))
        return self.create("CreateSession", (POINTER, self.env), (TEXT, os.fsencode(path)), (POINTER, options))

    def run(self, session, feed, outputs):
        """Peak bytes in addition to those that were live before, outputs included."""
        values = []
        got = (POINTER * len(outputs))()
        try:
            values += [self._value(a) for a in feed.values()]
            before = self.most = self.live
            self.call(
                "Run", (POINTER, session), (POINTER, None), (POINTER, _address(_texts(feed))), (POINTER, _address((POINTER * len(values))(*values))),
                (SIZE, len(values)), (POINTER, _address(_texts(outputs))), (SIZE, len(outputs)), (POINTER, _address(got)),
            )
            return self.most - before
        finally:
            for v in [*values, *got]:
                self.release("ReleaseValue", v)

    def _value(self, a):
        shape = (ctypes.c_int64 * a.ndim)(*a.shape)
        kind = onnx.helper.np_dtype_to_tensor_dtype(a.dtype)  # the numbers are ONNX's
        return self.create(
            "CreateTensorWithDataAsOrtValue", (POINTER, self.place), (POINTER, a.ctypes.data), (SIZE, a.nbytes),
            (POINTER, _address(shape)), (SIZE, a.ndim), (INT, kind),
        )


def _table():
    class Base(ctypes.Structure):
        _fields_ = [("get", ctypes.CFUNCTYPE(ctypes.POINTER(POINTER), ctypes.c_uint32))]

    library = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(onnxruntime.__file__), "capi", "libonnxruntime.*"))[0])
    library.OrtGetApiBase.restype = ctypes.POINTER(Base)
    return library.OrtGetApiBase().contents.get(VERSION)


def _texts(names):
    return (TEXT * len(names))(*(n.encode() for n in names))


def _address(array):
    """The address of array as a pointer that keeps it alive."""
    return ctypes.cast(array, POINTER)


def _growth_of_process(path, inputs):
    """How much the resident memory of a process of its own grows in a first run, from after loading; 0 where the system does not say."""
    if not os.path.exists("/proc/self/clear_refs"):
        return 0
    task = json.dumps({"path": path, "inputs": inputs})
    done = subprocess.run([sys.executable, "-B", os.path.abspath(__file__)], input=task, capture_output=True, text=True, check=True)
    return int(done.stdout)


def _growth(path, inputs):
    feed = {i["Name"]: _array(i) for i in inputs}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    ctypes.CDLL(None).malloc_trim(0)  # what loading has freed is not to be had for nothing
    before = _status("VmRSS")
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")  # the high-water mark begins anew
    session.run(None, feed)
    return _status("VmHWM") - before


def _status(field):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith(field + ":"))


if __name__ == "__main__":
    print(_growth(**json.load(sys.stdin)))
