package ort

import (
	"fmt"
)

// A Library is ONNX Runtime in this process. It needs no closing, and any number of sessions may use it concurrently.
type Library struct {
	Path    string
	Version string // such as 1.31.1

	table     uintptr // OrtApi
	allocator uintptr // the default one, which is never released
}

// Load loads ONNX Runtime from the path that Find returns. It is an error if the library is older than 1.17.
func Load(path string) (*Library, error) {
	start, err := symbol(path, "OrtGetApiBase")
	if err != nil {
		return nil, fmt.Errorf("load ONNX Runtime from %s: %s", path, oneLine(err.Error()))
	}
	return newLibrary(path, start)
}

// newLibrary takes the address of OrtGetApiBase, the entry point of the API.
func newLibrary(path string, start uintptr) (*Library, error) {
	base := invoke(start) // struct OrtApiBase { GetApi, GetVersionString }
	l := &Library{Path: path, Version: text(invoke(word(base, 1)))}
	if !serves(l.Version) {
		return nil, fmt.Errorf("%s is ONNX Runtime %s: 1.%d or newer is needed", path, l.Version, apiVersion)
	}
	if l.table = invoke(word(base, 0), apiVersion); l.table == 0 {
		return nil, fmt.Errorf("%s is ONNX Runtime %s, which does not serve version %d of its API", path, l.Version,
			apiVersion)
	}
	var err error
	l.allocator, err = get[uintptr](l, getAllocatorWithDefaultOptions)
	return l, err
}

// serves checks the version first, as an old library writes to stderr when a newer API is requested. The API's version
// is the minor one.
func serves(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 1 || minor >= apiVersion
}
