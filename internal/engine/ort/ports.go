package ort

import (
	"slices"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// Inputs are the required inputs of a run. Initializers among the graph's inputs are not listed; they may be fed too.
//
// ONNX Runtime does not distinguish a scalar from a tensor of unknown rank: both have no Shape.
func (s *Session) Inputs() []op.Port { return slices.Clone(s.inputs) }

// Outputs are the values that a run may fetch, in the graph's order.
func (s *Session) Outputs() []op.Port { return slices.Clone(s.outputs) }

// findPorts reads the names and types of inputs and outputs.
func (s *Session) findPorts() error {
	for _, side := range []struct {
		ports                 *[]op.Port
		count, nameOf, typeOf function
	}{
		{&s.inputs, sessionGetInputCount, sessionGetInputName, sessionGetInputTypeInfo},
		{&s.weights, sessionGetOverridableCount, sessionGetOverridableName, sessionGetOverridableTypeInfo},
		{&s.outputs, sessionGetOutputCount, sessionGetOutputName, sessionGetOutputTypeInfo},
	} {
		n, err := get[uintptr](s.lib, side.count, s.session)
		if err != nil {
			return err
		}
		for i := range n {
			name, err := s.name(side.nameOf, i)
			if err != nil {
				return err
			}
			kind, t, err := s.typ(side.typeOf, i)
			if err != nil {
				return err
			}
			*side.ports = append(*side.ports, op.Port{Name: name, Type: t})
			if kind == typeOptional {
				s.optional = append(s.optional, name)
			}
		}
	}
	return nil
}

func (s *Session) name(of function, i uintptr) (string, error) {
	address, err := get[uintptr](s.lib, of, s.session, i, s.lib.allocator)
	if err != nil {
		return "", err
	}
	name := text(address)
	return name, s.lib.call(allocatorFree, s.lib.allocator, address)
}

// typ is the ONNXType of the port, and its type if it is a tensor.
func (s *Session) typ(of function, i uintptr) (kind int32, t *ir.Type, err error) {
	call := scope{Library: s.lib}
	defer call.close()
	info, err := call.create(of, releaseTypeInfo, s.session, i)
	if err != nil {
		return 0, nil, err
	}
	if kind, err = get[int32](s.lib, getOnnxTypeFromTypeInfo, info); err != nil || kind != typeTensor {
		return kind, nil, err
	}
	tensor, err := get[uintptr](s.lib, castTypeInfoToTensorInfo, info)
	if err != nil {
		return kind, nil, err
	}
	t, err = call.tensorType(tensor)
	return kind, t, err
}

// tensorType reads an OrtTensorTypeAndShapeInfo, symbols included.
func (s *scope) tensorType(info uintptr) (*ir.Type, error) {
	spec, err := s.specOf(info)
	if err != nil {
		return nil, err
	}
	symbols := make([]uintptr, len(spec.Shape))
	if err := s.call(getSymbolicDimensions, info, address(s, symbols), uintptr(len(symbols))); err != nil {
		return nil, err
	}
	t := &ir.Type{Elem: spec.DType}
	for axis, size := range spec.Shape {
		t.Shape = append(t.Shape, ir.Dim{N: size, Param: text(symbols[axis])})
	}
	return t, nil
}
