package ort

import (
	"errors"
	"runtime"
	"strings"
	"unsafe"
)

// apiVersion is the requested version of the API: the oldest that has all functions used here, since a library supports
// its own version and all earlier ones.
const apiVersion = 17

// A function is an index in OrtApi, the table of function pointers of the C API. New versions append to the table and
// never change earlier entries (onnxruntime_c_api.h).
type function uintptr

const (
	getErrorMessage                     function = 2
	createEnv                           function = 3
	createSession                       function = 7
	run                                 function = 9
	createSessionOptions                function = 10
	setSessionGraphOptimizationLevel    function = 23
	setIntraOpNumThreads                function = 24
	sessionGetInputCount                function = 30
	sessionGetOutputCount               function = 31
	sessionGetOverridableCount          function = 32
	sessionGetInputTypeInfo             function = 33
	sessionGetOutputTypeInfo            function = 34
	sessionGetOverridableTypeInfo       function = 35
	sessionGetInputName                 function = 36
	sessionGetOutputName                function = 37
	sessionGetOverridableName           function = 38
	createRunOptions                    function = 39
	runOptionsSetTerminate              function = 46
	createTensorAsOrtValue              function = 48
	createTensorWithDataAsOrtValue      function = 49
	getTensorMutableData                function = 51
	getStringTensorDataLength           function = 53
	getStringTensorContent              function = 54
	castTypeInfoToTensorInfo            function = 55
	getOnnxTypeFromTypeInfo             function = 56
	getTensorElementType                function = 60
	getDimensionsCount                  function = 61
	getDimensions                       function = 62
	getSymbolicDimensions               function = 63
	getTensorTypeAndShape               function = 65
	getValueType                        function = 67
	createCPUMemoryInfo                 function = 69
	allocatorFree                       function = 76
	getAllocatorWithDefaultOptions      function = 78
	getValue                            function = 80
	getValueCount                       function = 81
	createValue                         function = 82
	releaseEnv                          function = 92
	releaseStatus                       function = 93
	releaseMemoryInfo                   function = 94
	releaseSession                      function = 95
	releaseValue                        function = 96
	releaseRunOptions                   function = 97
	releaseTypeInfo                     function = 98
	releaseTensorTypeAndShapeInfo       function = 99
	releaseSessionOptions               function = 100
	addSessionConfigEntry               function = 130
	hasValue                            function = 192
	getResizedStringTensorElementBuffer function = 252
)

// invoke calls a function that cannot fail.
func (l *Library) invoke(f function, args ...uintptr) uintptr {
	return invoke(word(l.table, uintptr(f)), args...)
}

// call calls a function that returns an OrtStatus.
func (l *Library) call(f function, args ...uintptr) error {
	status := l.invoke(f, args...)
	if status == 0 {
		return nil
	}
	defer l.invoke(releaseStatus, status)
	return errors.New("onnxruntime: " + oneLine(text(l.invoke(getErrorMessage, status))))
}

// get calls a function whose last parameter is the address of its result.
func get[T any](l *Library, f function, args ...uintptr) (T, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	result := new(T)
	// C gets its address as an integer, which does not keep an object alive or where it is.
	pin.Pin(result)
	err := l.call(f, append(args, uintptr(unsafe.Pointer(result)))...)
	return *result, err
}

// A scope owns the memory that C may use until close: objects of ONNX Runtime, and pinned Go memory.
type scope struct {
	*Library
	pin   runtime.Pinner
	owned []object
}

type object struct {
	release function
	address uintptr
}

// create calls a function that creates an object, which close releases.
func (s *scope) create(f, release function, args ...uintptr) (uintptr, error) {
	address, err := get[uintptr](s.Library, f, args...)
	s.own(release, address)
	return address, err
}

// own registers objects to release. Zeros are ignored.
func (s *scope) own(release function, addresses ...uintptr) {
	for _, a := range addresses {
		if a != 0 {
			s.owned = append(s.owned, object{release, a})
		}
	}
}

// text is the address of a C string.
func (s *scope) text(t string) uintptr { return address(s, append([]byte(t), 0)) }

// texts is the address of an array of C strings.
func (s *scope) texts(list []string) uintptr {
	addresses := make([]uintptr, len(list))
	for i, t := range list {
		addresses[i] = s.text(t)
	}
	return address(s, addresses)
}

// address is the address of the elements, 0 if there are none. A scope that has pinned memory must be closed.
func address[T any](s *scope, elements []T) uintptr {
	if len(elements) == 0 {
		return 0
	}
	s.pin.Pin(&elements[0])
	return uintptr(unsafe.Pointer(&elements[0]))
}

// close releases in reverse order, as later objects use earlier ones.
func (s *scope) close() {
	for len(s.owned) > 0 {
		last := s.owned[len(s.owned)-1]
		s.owned = s.owned[:len(s.owned)-1]
		s.invoke(last.release, last.address)
	}
	s.pin.Unpin()
}

// pointer converts an address that C returned to a pointer: vet warns of direct conversions, because they are invalid
// for Go memory.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// word is element i of an array of addresses.
func word(array, i uintptr) uintptr {
	return *(*uintptr)(unsafe.Add(pointer(array), i*unsafe.Sizeof(i)))
}

// text copies a C string.
func text(address uintptr) string {
	if address == 0 {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(pointer(address), n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(pointer(address)), n))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
