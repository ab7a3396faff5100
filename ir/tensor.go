package ir

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/bits"
	"strings"
)

// A Spec is the name, element type and shape of a tensor, known before its bytes are read.
type Spec struct {
	Name  string
	DType DType
	Shape []int64 // no symbolic dimensions; empty for a scalar
}

// Elems is the number of elements.
func (s Spec) Elems() int64 {
	n := int64(1)
	for _, d := range s.Shape {
		n *= d
	}
	return n
}

// Bytes is the exact size of the payload; sub-byte types are packed over the
// whole tensor. It is 0 for strings.
func (s Spec) Bytes() int64 { return (s.Elems()*s.DType.Bits() + 7) / 8 }

// MaxRank is the maximum number of axes, that of NumPy and PyTorch.
const MaxRank = 64

// Valid reports too many dimensions, negative ones, and those whose payload no file can hold. Like NumPy it also
// rejects an empty tensor whose other dimensions are too large, so that products of some of the dimensions do not
// overflow.
func (s Spec) Valid() error {
	if len(s.Shape) > MaxRank {
		return fmt.Errorf("a shape has %d dimensions, the maximum is %d", len(s.Shape), MaxRank)
	}
	n := uint64(1)
	for _, d := range s.Shape {
		if d < 0 {
			return fmt.Errorf("dimension %d is negative", d)
		}
		// A dimension of 0 counts as 1.
		hi, lo := bits.Mul64(n, max(1, uint64(d)))
		// Of elements of up to 128 bits, whose number of bits has to fit an int64.
		if hi != 0 || lo > math.MaxInt64/128 {
			return fmt.Errorf("shape %v holds too many elements", s.Shape)
		}
		n = lo
	}
	return nil
}

// String is the type in ONNX's text syntax, for example float[2,3].
func (s Spec) String() string {
	if len(s.Shape) == 0 {
		return s.DType.String()
	}
	dims := make([]string, len(s.Shape))
	for i, d := range s.Shape {
		dims[i] = fmt.Sprint(d)
	}
	return s.DType.String() + "[" + strings.Join(dims, ",") + "]"
}

// A Tensor is a constant: a Spec and the source of its bytes. A pass never
// changes a tensor, it makes a new one.
type Tensor struct {
	Spec
	Source Source
	Origin any // how the file encoded it; only the package that read it looks inside
}

// A Source is the location of a payload: Mem, Span or Output, or Text for strings.
type Source interface{ source() }

// Mem is a payload held in memory, little-endian as ONNX's raw_data.
type Mem []byte

// A Span is a payload inside a file, little-endian as ONNX's raw_data.
type Span struct {
	R   io.ReaderAt
	Off int64
}

// An Output is one result of a Recipe that has not run yet.
type Output struct {
	Of    *Recipe
	Index int
}

// Text reads the elements of a String tensor, which is no sequence of bytes.
type Text func() ([]string, error)

func (Mem) source()    {}
func (Span) source()   {}
func (Output) source() {}
func (Text) source()   {}

// A Recipe describes how tensors are computed from tensors. Passes build recipes; only the
// writer runs them. Its outputs' sizes are exact before any byte is read, as file
// offsets are laid out from them.
type Recipe struct {
	Name string
	In   []*Tensor
	Out  []Spec
	Work int64 // most bytes Run holds at once, its inputs not counted

	// Run reads the inputs and writes each output once, in order. An output that
	// is not requested is discarded.
	Run func(ctx context.Context, in []io.ReaderAt, out []io.Writer) error

	// View, where set, replaces Run: random access to the single output,
	// computed from the inputs as it is read. It keeps chains of elementwise
	// recipes free of intermediate copies.
	View func(in []io.ReaderAt) io.ReaderAt
}

// Derive returns one tensor for each of r's outputs.
func (r *Recipe) Derive() []*Tensor {
	ts := make([]*Tensor, len(r.Out))
	for i, s := range r.Out {
		ts[i] = &Tensor{Spec: s, Source: Output{r, i}}
	}
	return ts
}
