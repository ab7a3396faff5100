package mcompress_test

import (
	"testing"
	"unsafe"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/ir"
)

// Outputs are in the memory of recycled ones.
func TestSessionRecycles(t *testing.T) {
	s, err := mcompress.NewSession(t.Context(), "fixtures/mlp.onnx", mcompress.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	output := func() *ir.Array {
		out, err := s.Run(t.Context(), map[string]*ir.Array{s.Inputs()[0].Name: ir.NewArray(ir.Float, 2, 1, 20, 20)})
		if err != nil {
			t.Fatal(err)
		}
		return out[s.Outputs()[0].Name]
	}
	first := output()
	s.Recycle(first)
	if second := output(); unsafe.SliceData(second.Data) != unsafe.SliceData(first.Data) {
		t.Error("the second output has memory of its own")
	}
}
