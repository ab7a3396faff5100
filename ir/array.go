package ir

import (
	"fmt"
	"unsafe"
)

// A Kind is the kind of an Array.
type Kind uint8

// What a value can be while a model runs.
const (
	Dense    Kind = iota // a tensor
	Sequence             // Items
	Map                  // Keys and, at the same positions, Items[0]'s elements
	None                 // an optional without a value; one with a value is the value itself
)

// An Array is what a value of the graph holds while the model runs: mostly a tensor
// whose elements are in memory.
type Array struct {
	Kind  Kind
	DType DType    // of a tensor's elements
	Shape []int64  // row-major; empty for a scalar
	Data  []byte   // little-endian as ONNX's raw_data, aligned for its elements; nil for strings
	Text  []string // the elements of a String tensor
	Items []*Array // of a sequence; the values of a map, as one tensor
	Keys  *Array   // of a map, as a tensor of rank 1
}

// NewArray returns a tensor of zeros, or of empty strings. It panics if a size is negative, as make does.
func NewArray(dt DType, shape ...int64) *Array {
	a := &Array{DType: dt, Shape: shape}
	if dt == String {
		a.Text = make([]string, a.Elems())
	} else {
		a.Data = AlignedBytes(a.Bytes())
	}
	return a
}

// ArrayOf returns a tensor of these elements, which it does not copy. The element type
// follows from T; bytes are Uint8. It panics if the shape is not one of len(data) elements,
// as the program that calls it has made both: check a shape that comes from a file or a user
// with Spec.Valid and Spec.Elems first.
func ArrayOf[T Element](data []T, shape ...int64) *Array {
	a := &Array{DType: elementType[T](), Shape: shape}
	if int64(len(data)) != a.Elems() {
		panic(fmt.Sprintf("ir: %d elements for shape %v", len(data), shape))
	}
	if len(data) > 0 {
		a.Data = unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), a.Bytes())
	}
	return a
}

// TextOf returns a String tensor of these elements, which it does not copy.
func TextOf(text []string, shape ...int64) *Array {
	return &Array{DType: String, Shape: shape, Text: text}
}

// An Element is a Go type that elements of tensors are stored as. Types that Go does
// not have are stored as words of their width: float16 and bfloat16 as uint16, the
// 8-bit floats as uint8; packed 4- and 2-bit ones have no element of their own.
type Element interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | bool | complex64 | complex128
}

// View is a's payload as elements; it shares a's memory. T must have the width of a's
// type: another one is a bug of the caller and panics.
func View[T Element](a *Array) []T {
	var zero T
	size := int64(unsafe.Sizeof(zero))
	if a.DType.Bits() != size*8 {
		panic(fmt.Sprintf("ir: a view of %d-byte elements on %s", size, a.DType))
	}
	if len(a.Data) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&a.Data[0])), int64(len(a.Data))/size)
}

// Alignment is that of AlignedBytes in bytes.
const Alignment = 64

// AlignedBytes returns n zero bytes that start at a multiple of 64, as the widest vector
// instructions like it.
func AlignedBytes(n int64) []byte {
	if n == 0 {
		return nil
	}
	b := make([]byte, n+Alignment)
	skip := -uintptr(unsafe.Pointer(&b[0])) & (Alignment - 1)
	return b[skip : int64(skip)+n : int64(skip)+n]
}

// alignedCopy is a copy of data that is aligned like AlignedBytes. append, unlike make, does not clear the memory, and
// aligns all but short slices.
func alignedCopy(data []byte) []byte {
	b := append([]byte(nil), data...)
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%Alignment == 0 {
		return b[:len(b):len(b)]
	}
	b = AlignedBytes(int64(len(data)))
	copy(b, data)
	return b
}

// Spec is a tensor's type and shape, without a name.
func (a *Array) Spec() Spec { return Spec{DType: a.DType, Shape: a.Shape} }

// Elems is the number of a tensor's elements.
func (a *Array) Elems() int64 { return a.Spec().Elems() }

// Bytes is the size of a tensor's payload; 0 for strings.
func (a *Array) Bytes() int64 { return a.Spec().Bytes() }

// String is a's type in ONNX's text syntax.
func (a *Array) String() string {
	switch a.Kind {
	case Sequence:
		return fmt.Sprintf("seq of %d", len(a.Items))
	case Map:
		return "map"
	case None:
		return "optional"
	}
	return a.Spec().String()
}

// Clone returns a copy that shares no memory with a.
func (a *Array) Clone() *Array {
	c := *a
	c.Shape = append([]int64(nil), a.Shape...)
	if a.Data != nil {
		c.Data = alignedCopy(a.Data)
	}
	c.Text = append([]string(nil), a.Text...)
	c.Items = make([]*Array, len(a.Items))
	for i, item := range a.Items {
		c.Items[i] = item.Clone()
	}
	if a.Keys != nil {
		c.Keys = a.Keys.Clone()
	}
	return &c
}

// elementType is the ONNX type of the Go type T.
func elementType[T Element]() DType {
	switch any(*new(T)).(type) {
	case float32:
		return Float
	case float64:
		return Double
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case bool:
		return Bool
	case complex64:
		return Complex64
	case complex128:
		return Complex128
	}
	return Undefined
}
