package pass_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

func TestDuplicates(t *testing.T) {
	big := make([]float32, 40000) // longer than a sample
	other := bytes.Clone(kernel.Bytes(big))
	other[len(other)-1] = 1
	m := product()
	add := func(s ir.Spec, b []byte) *ir.Value {
		return m.Graph.AddConst("w", &ir.Tensor{Spec: s, Source: ir.Mem(b)})
	}
	s := ir.Spec{DType: ir.Float, Shape: []int64{200, 200}}
	a := add(s, kernel.Bytes(big))
	b := add(s, bytes.Clone(kernel.Bytes(big)))
	differs := add(s, other)
	shape := add(ir.Spec{DType: ir.Float, Shape: []int64{40000}}, kernel.Bytes(big))
	first, err := pass.Duplicates(t.Context(), newEval(t), 2, []*ir.Value{a, b, differs, shape})
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range map[*ir.Value]*ir.Value{a: a, b: a, differs: differs, shape: shape} {
		if first[v] != want {
			t.Errorf("%s: first is %s, want %s", v.Name, first[v].Name, want.Name)
		}
	}
}

// unreadable is a source whose reads fail.
type unreadable struct{}

var errRead = errors.New("read")

func (unreadable) ReadAt([]byte, int64) (int, error) { return 0, errRead }

var _ io.ReaderAt = unreadable{}

func TestTensorsWithUniqueTypeAndShapeAreNotRead(t *testing.T) {
	m := product()
	v := m.Graph.AddConst("w", &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{5}},
		Source: ir.Span{R: unreadable{}}})
	if _, err := pass.Duplicates(t.Context(), newEval(t), 2, []*ir.Value{v}); err != nil {
		t.Error(err)
	}
	w := m.Graph.AddConst("w", &ir.Tensor{Spec: v.Const.Spec, Source: ir.Span{R: unreadable{}}})
	if _, err := pass.Duplicates(t.Context(), newEval(t), 2, []*ir.Value{v, w}); !errors.Is(err, errRead) {
		t.Errorf("got %v, want the error of reading", err)
	}
}
