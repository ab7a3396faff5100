//go:build !noort && !windows

package ort

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// The version is checked before the API is requested: an old library would write to stderr.
func TestOldLibraryIsAnError(t *testing.T) {
	for version, want := range map[string]string{
		"1.16.3":  "ONNX Runtime 1.16.3: 1.17 or newer is needed",
		"1.9.0":   "1.17 or newer is needed",
		"nothing": "1.17 or newer is needed",
		"1.17.0":  "does not serve version 17",
		"2.0.0":   "does not serve version 17",
	} {
		requested := false
		_, err := newLibrary("lib.so", fake(t, version, &requested))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "lib.so") {
			t.Errorf("%s: got %v, want %q", version, err, want)
		}
		if requested == strings.Contains(want, "or newer") {
			t.Errorf("%s: its API was requested: %v", version, requested)
		}
	}
}

// fake is the address of an OrtGetApiBase of a library that supports no API.
func fake(t *testing.T, version string, requested *bool) uintptr {
	t.Helper()
	var pin runtime.Pinner
	t.Cleanup(pin.Unpin)
	name := append([]byte(version), 0)
	base := new([2]uintptr)
	pin.Pin(&name[0])
	pin.Pin(base)
	base[0] = purego.NewCallback(func(uintptr) uintptr { *requested = true; return 0 })
	base[1] = purego.NewCallback(func() uintptr { return uintptr(unsafe.Pointer(&name[0])) })
	return purego.NewCallback(func() uintptr { return uintptr(unsafe.Pointer(base)) })
}
