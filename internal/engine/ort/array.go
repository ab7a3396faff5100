package ort

import (
	"fmt"
	"unsafe"

	"github.com/mcompress/mcompress/ir"
)

// array copies an OrtValue.
func (l *Library) array(value uintptr) (*ir.Array, error) {
	if has, err := get[int32](l, hasValue, value); err != nil || has == 0 {
		return &ir.Array{Kind: ir.None}, err
	}
	kind, err := get[int32](l, getValueType, value)
	if err != nil {
		return nil, err
	}
	switch kind {
	case typeTensor:
		return l.tensor(value)
	case typeSequence:
		items, err := l.items(value)
		return &ir.Array{Kind: ir.Sequence, Items: items}, err
	case typeMap:
		parts, err := l.items(value)
		if err != nil {
			return nil, err
		}
		return &ir.Array{Kind: ir.Map, Keys: parts[0], Items: parts[1:]}, nil
	}
	return nil, fmt.Errorf("unsupported value of ONNX Runtime's type %d: only tensors, sequences, maps and optionals "+
		"can be read", kind)
}

// items are the elements of a sequence, or a map's keys and values.
func (l *Library) items(value uintptr) ([]*ir.Array, error) {
	n, err := get[uintptr](l, getValueCount, value)
	if err != nil {
		return nil, err
	}
	items := make([]*ir.Array, n)
	for i := range items {
		if items[i], err = l.item(value, uintptr(i)); err != nil {
			return nil, err
		}
	}
	return items, nil
}

func (l *Library) item(value, i uintptr) (*ir.Array, error) {
	s := scope{Library: l}
	defer s.close()
	part, err := s.create(getValue, releaseValue, value, i, l.allocator)
	if err != nil {
		return nil, err
	}
	return l.array(part)
}

func (l *Library) tensor(value uintptr) (*ir.Array, error) {
	spec, err := l.spec(value)
	if err != nil {
		return nil, err
	}
	a := ir.NewArray(spec.DType, spec.Shape...)
	if a.DType == ir.String {
		return a, l.readStrings(value, a.Text)
	}
	data, err := get[uintptr](l, getTensorMutableData, value)
	if err != nil {
		return nil, err
	}
	copy(a.Data, unsafe.Slice((*byte)(pointer(data)), len(a.Data)))
	return a, nil
}

func (l *Library) spec(value uintptr) (ir.Spec, error) {
	s := scope{Library: l}
	defer s.close()
	info, err := s.create(getTensorTypeAndShape, releaseTensorTypeAndShapeInfo, value)
	if err != nil {
		return ir.Spec{}, err
	}
	return s.specOf(info)
}

// specOf reads an OrtTensorTypeAndShapeInfo. In a type, symbolic dimensions are -1.
func (s *scope) specOf(info uintptr) (ir.Spec, error) {
	number, err := get[int32](s.Library, getTensorElementType, info)
	if err != nil {
		return ir.Spec{}, err
	}
	dt, err := dtypeOf(number)
	if err != nil {
		return ir.Spec{}, err
	}
	rank, err := get[uintptr](s.Library, getDimensionsCount, info)
	if err != nil {
		return ir.Spec{}, err
	}
	shape := make([]int64, rank)
	err = s.call(getDimensions, info, address(s, shape), rank)
	return ir.Spec{DType: dt, Shape: shape}, err
}

// readStrings fills text with the elements of a tensor: ONNX Runtime returns all of them in one buffer, with their
// offsets.
func (l *Library) readStrings(value uintptr, text []string) error {
	if len(text) == 0 {
		return nil
	}
	s := scope{Library: l}
	defer s.close()
	size, err := get[uintptr](l, getStringTensorDataLength, value)
	if err != nil {
		return err
	}
	content, starts := make([]byte, size), make([]uintptr, len(text), len(text)+1)
	if err := s.call(getStringTensorContent, value, address(&s, content), size, address(&s, starts),
		uintptr(len(starts))); err != nil {
		return err
	}
	starts = append(starts, size)
	for i := range text {
		text[i] = string(content[starts[i]:starts[i+1]])
	}
	return nil
}
