"""mcompress compresses ONNX models. This package finds its program; `python -m mcompress` runs it."""

import os
import sys
import sysconfig

__all__ = ["program"]


def program() -> str:
    """Return the path of the program. Raises FileNotFoundError if no folder of scripts has it."""
    name = "mcompress.exe" if sys.platform == "win32" else "mcompress"
    user = sysconfig.get_preferred_scheme("user") if sys.version_info >= (3, 10) else f"{os.name}_user"
    above = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", user),
        os.path.join(above, "bin"),  # pip install --target
    ]
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"{name} is in none of {', '.join(folders)}")
