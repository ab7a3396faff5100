package pass_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

func TestFloatsReadsEveryType(t *testing.T) {
	want := []float32{0, 1, -2.5, 0.5}
	halves := func(hs ...uint16) []byte {
		var b []byte
		for _, h := range hs {
			b = binary.LittleEndian.AppendUint16(b, h)
		}
		return b
	}
	var doubles []byte
	for _, v := range want {
		doubles = binary.LittleEndian.AppendUint64(doubles, math.Float64bits(float64(v)))
	}
	for dt, raw := range map[ir.DType][]byte{
		ir.Float:    kernel.Bytes(want),
		ir.Float16:  halves(0x0000, 0x3c00, 0xc100, 0x3800),
		ir.BFloat16: halves(0x0000, 0x3f80, 0xc020, 0x3f00),
		ir.Double:   doubles,
	} {
		f := pass.NewFloats(bytes.NewReader(raw), dt)
		got := make([]float32, 3)
		if err := f.Read(got, 1); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want[1:]) {
			t.Errorf("%s: got %v, want %v", dt, got, want[1:])
		}
		if err := f.Read(got, 2); err == nil {
			t.Errorf("%s: no error for reading beyond the end", dt)
		}
	}
	if err := pass.NewFloats(bytes.NewReader(nil), ir.Int8).Read(make([]float32, 1), 0); err == nil {
		t.Error("no error for int8")
	}
}

func TestScanCoversTheTensorInOrder(t *testing.T) {
	n := int64(2*pass.Block + 7)
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i)
	}
	w := &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{n}}, Source: ir.Mem(kernel.Bytes(x))}
	next := int64(0)
	err := pass.Scan(t.Context(), newEval(t), w, func(b []float32, first int64) error {
		if first != next || b[0] != float32(first) {
			t.Fatalf("block at %d, first element %g; want %d", first, b[0], next)
		}
		next += int64(len(b))
		return nil
	})
	if err != nil || next != n {
		t.Errorf("scanned %d of %d elements: %v", next, n, err)
	}
}
