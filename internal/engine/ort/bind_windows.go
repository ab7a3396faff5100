//go:build !noort && (amd64 || arm64)

package ort

import (
	"encoding/binary"
	"syscall"
	"unicode/utf16"
)

// symbol loads the library and returns the address of one of its functions. It is never unloaded: its threads may
// outlive the objects created with it.
func symbol(library, name string) (uintptr, error) {
	handle, err := syscall.LoadLibrary(library)
	if err != nil {
		return 0, err
	}
	return syscall.GetProcAddress(handle, name)
}

// invoke calls a C function whose parameters are integers and pointers.
func invoke(f uintptr, args ...uintptr) uintptr {
	result, _, _ := syscall.SyscallN(f, args...)
	return result
}

// encodePath is a path in ONNX Runtime's encoding: UTF-16 on Windows.
func encodePath(path string) []byte {
	var b []byte
	for _, unit := range utf16.Encode([]rune(path + "\x00")) {
		b = binary.LittleEndian.AppendUint16(b, unit)
	}
	return b
}
