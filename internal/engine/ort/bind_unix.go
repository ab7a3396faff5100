//go:build !noort && (linux || darwin) && (amd64 || arm64)

package ort

import "github.com/ebitengine/purego"

// symbol loads the library and returns the address of one of its functions. It is never unloaded: its threads may
// outlive the objects created with it.
func symbol(library, name string) (uintptr, error) {
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, err
	}
	return purego.Dlsym(handle, name)
}

// invoke calls a C function whose parameters are integers and pointers.
func invoke(f uintptr, args ...uintptr) uintptr {
	result, _, _ := purego.SyscallN(f, args...)
	return result
}

// encodePath is a path in ONNX Runtime's encoding.
func encodePath(path string) []byte { return append([]byte(path), 0) }
