package ort

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/mcompress/mcompress/ir"
)

// Kinds of values, as numbered by ONNXType.
const (
	typeTensor   = 1
	typeSequence = 2
	typeMap      = 3
	typeOptional = 6
)

// value creates an OrtValue of a. A tensor's payload is not copied: ONNX Runtime reads it in place until the scope is
// closed.
func (s *scope) value(a *ir.Array, memory uintptr) (uintptr, error) {
	switch a.Kind {
	case ir.Dense:
		return s.tensor(a, memory)
	case ir.Sequence:
		return s.composite(typeSequence, a.Items, memory)
	case ir.Map:
		return s.composite(typeMap, append([]*ir.Array{a.Keys}, a.Items...), memory)
	}
	return 0, errors.New("no value")
}

func (s *scope) composite(kind uintptr, parts []*ir.Array, memory uintptr) (uintptr, error) {
	if len(parts) == 0 {
		return 0, errors.New("ONNX Runtime's API cannot create an empty sequence")
	}
	values := make([]uintptr, len(parts))
	for i, part := range parts {
		if part == nil {
			return 0, errors.New("an item has no value")
		}
		var err error
		if values[i], err = s.value(part, memory); err != nil {
			return 0, err
		}
	}
	return s.create(createValue, releaseValue, address(s, values), uintptr(len(values)), kind)
}

func (s *scope) tensor(a *ir.Array, memory uintptr) (uintptr, error) {
	if err := a.Spec().Valid(); err != nil {
		return 0, err
	}
	dt, err := elementType(a.DType)
	if err != nil {
		return 0, err
	}
	if a.DType == ir.String {
		return s.strings(a)
	}
	if int64(len(a.Data)) != a.Bytes() {
		return 0, fmt.Errorf("%d bytes for %s", len(a.Data), a)
	}
	return s.create(createTensorWithDataAsOrtValue, releaseValue, memory, address(s, a.Data), uintptr(len(a.Data)),
		address(s, a.Shape), uintptr(len(a.Shape)), dt)
}

// strings copies the elements one by one into buffers that ONNX Runtime allocates: they may contain zero bytes, which
// end a C string.
func (s *scope) strings(a *ir.Array) (uintptr, error) {
	if int64(len(a.Text)) != a.Elems() {
		return 0, fmt.Errorf("%d strings for %s", len(a.Text), a)
	}
	dt, err := elementType(ir.String)
	if err != nil {
		return 0, err
	}
	value, err := s.create(createTensorAsOrtValue, releaseValue, s.allocator, address(s, a.Shape),
		uintptr(len(a.Shape)), dt)
	if err != nil {
		return 0, err
	}
	for i, t := range a.Text {
		buffer, err := get[uintptr](s.Library, getResizedStringTensorElementBuffer, value, uintptr(i), uintptr(len(t)))
		if err != nil {
			return 0, err
		}
		copy(unsafe.Slice((*byte)(pointer(buffer)), len(t)), t)
	}
	return value, nil
}
