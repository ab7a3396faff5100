//go:build noort || !(linux || darwin || windows) || !(amd64 || arm64)

package ort

import "errors"

func symbol(library, name string) (uintptr, error) {
	return 0, errors.New("this program was built without ONNX Runtime, to be static: use that of the Python wheel or " +
		"of the archive for glibc, or build without the tag noort, for Linux, macOS or Windows on amd64 or arm64")
}

func invoke(f uintptr, args ...uintptr) uintptr {
	panic("ort: a call without a library")
}

func encodePath(path string) []byte { return []byte(path) }
