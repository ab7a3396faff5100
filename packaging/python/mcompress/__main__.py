"""Runs the program: `python -m mcompress ARGUMENTS`."""

import glob
import importlib.util
import os
import subprocess
import sys

from mcompress import program

# The variable that names ONNX Runtime's library, for --backend ort.
VARIABLE = "MCOMPRESS_ORT_LIB"


def onnxruntime() -> "str | None":
    """Return the folder of the library in the package onnxruntime, which is not imported; None without it."""
    spec = importlib.util.find_spec("onnxruntime")
    for folder in (spec and spec.submodule_search_locations) or []:
        capi = os.path.join(folder, "capi")
        if any(glob.glob(os.path.join(glob.escape(capi), name)) for name in ("libonnxruntime.so*", "libonnxruntime.*dylib", "onnxruntime.dll")):
            return capi
    return None


def main() -> int:
    """Run the program in place of this process, where the system has that."""
    library = onnxruntime()
    if library is not None:
        os.environ.setdefault(VARIABLE, library)
    command = [program(), *sys.argv[1:]]
    if sys.platform == "win32":
        return subprocess.call(command)
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
