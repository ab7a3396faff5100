package report

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/x448/float16"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// in is a tensor of the given values in type dt, which can hold them, and what it holds.
func in(dt ir.DType, xs []float32) (*ir.Tensor, []float64) {
	var b []byte
	held := make([]float64, len(xs))
	for i, x := range xs {
		held[i] = float64(x)
		switch dt {
		case ir.Float:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		case ir.Double:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(x)))
		case ir.Float16:
			h := float16.Fromfloat32(x)
			b, held[i] = binary.LittleEndian.AppendUint16(b, h.Bits()), float64(h.Float32())
		case ir.BFloat16:
			h := math.Float32bits(x) >> 16
			b, held[i] = binary.LittleEndian.AppendUint16(b, uint16(h)), float64(math.Float32frombits(h<<16))
		case ir.Int8:
			b, held[i] = append(b, byte(int8(x))), float64(int8(x))
		case ir.Uint8:
			b, held[i] = append(b, byte(x)), float64(byte(x))
		}
	}
	return &ir.Tensor{Spec: ir.Spec{DType: dt, Shape: []int64{int64(len(xs))}}, Source: ir.Mem(b)}, held
}

func figuresOf(t *testing.T, ref, got *ir.Tensor) Figures {
	t.Helper()
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	f, err := compare(t.Context(), e, pair{ref, got}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCompareAgreesWithPlainSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 7, 1000, pass.Block, pass.Block + 1, 2*pass.Block + 333} {
		xs, ys := make([]float32, n), make([]float32, n)
		for i := range xs {
			xs[i] = float32(rng.IntN(100)) + 1
			ys[i] = max(0, xs[i]+float32(rng.IntN(9)-4))
		}
		for _, dt := range []ir.DType{ir.Float, ir.Double, ir.Float16, ir.BFloat16, ir.Int8, ir.Uint8} {
			ref, x := in(ir.Float, xs)
			got, y := in(dt, ys)
			var ref2, err2, got2, dot, most, zeros float64
			for i := range x {
				d := y[i] - x[i]
				ref2, err2, got2, dot, most = ref2+x[i]*x[i], err2+d*d, got2+y[i]*y[i], dot+x[i]*y[i], max(most, math.Abs(d))
				if y[i] == 0 {
					zeros++
				}
			}
			f := figuresOf(t, ref, got)
			if !near(f.Sparsity, zeros/float64(n)) || f.Error.Exact != (err2 == 0) {
				t.Errorf("%d of %s: got %v zeros, exact %v", n, dt, *f.Sparsity, f.Error.Exact)
			}
			if float64(*f.Error.Max) != most {
				t.Errorf("%d of %s: largest error %v, want %v", n, dt, *f.Error.Max, most)
			}
			if err2 > 0 && !near(f.Error.SQNR, 10*math.Log10(ref2/err2)) ||
				got2 > 0 && !near(f.Error.Cosine, dot/math.Sqrt(ref2*got2)) {
				t.Errorf("%d of %s: got %+v", n, dt, *f.Error)
			}
		}
	}
}

func TestCompareExact(t *testing.T) {
	negative := float32(math.Copysign(0, -1))
	third := weightOf(ir.Double, 0x3fd5555555555555)
	for _, c := range []struct {
		name     string
		ref, got *ir.Tensor
		exact    bool
	}{
		{"equal", weight("", []int64{2}, 1, 2), weight("", []int64{2}, 1, 2), true},
		{"the zeros", weight("", []int64{1}, 0), weight("", []int64{1}, negative), true},
		{"one unit apart", weight("", []int64{1}, 1), weight("", []int64{1}, math.Nextafter32(1, 2)), false},
		{"doubles that round alike", third, weightOf(ir.Double, 0x3fd5555555555556), false},
		{"the same double", third, weightOf(ir.Double, 0x3fd5555555555555), true},
		{"integers that are not compared as numbers", weightOf(ir.Int64, 1), weightOf(ir.Int64, 2), false},
		{"the same integers", weightOf(ir.Int64, 1), weightOf(ir.Int64, 1), true},
		{"from nothing", weight("", []int64{1}, 0), weight("", []int64{1}, 3), false},
	} {
		f := figuresOf(t, c.ref, c.got)
		if f.Error.Exact != c.exact {
			t.Errorf("%s: exact is %v", c.name, f.Error.Exact)
		}
		if f.Error.SQNR != nil && !finite(*f.Error.SQNR) || f.Error.Exact && f.Error.SQNR != nil {
			t.Errorf("%s: SQNR %v", c.name, *f.Error.SQNR)
		}
	}
}

func weightOf(dt ir.DType, bits uint64) *ir.Tensor {
	return &ir.Tensor{Spec: ir.Spec{DType: dt, Shape: []int64{1}},
		Source: ir.Mem(binary.LittleEndian.AppendUint64(nil, bits))}
}

func TestCompareCountsNegativeZeroAsZero(t *testing.T) {
	f := figuresOf(t, weight("", []int64{4}, 1, 2, 3, 4), weight("", []int64{4}, 0, float32(math.Copysign(0, -1)), 0, 4))
	if *f.Sparsity != 0.75 {
		t.Errorf("got %v, want 0.75 as the sparse forms count", *f.Sparsity)
	}
}

// Recipes write as they like; the sums must not depend on it.
func TestCompareWithAnyChunks(t *testing.T) {
	xs, ys := make([]float32, 2*pass.Block+77), make([]float32, 2*pass.Block+77)
	for i := range xs {
		xs[i], ys[i] = float32(math.Sin(float64(i))), float32(math.Sin(float64(i)*1.0001))
	}
	ref, _ := in(ir.Float, xs)
	whole, _ := in(ir.Float, ys)
	want := figuresOf(t, ref, whole)
	for _, chunk := range []int{1 << 10, 4093, 3 << 20} {
		r := &ir.Recipe{Name: "chunks", In: []*ir.Tensor{whole}, Out: []ir.Spec{whole.Spec}}
		r.Run = func(_ context.Context, rs []io.ReaderAt, ws []io.Writer) error {
			_, err := io.CopyBuffer(struct{ io.Writer }{ws[0]},
				struct{ io.Reader }{io.NewSectionReader(rs[0], 0, whole.Bytes())}, make([]byte, chunk))
			return err
		}
		got := figuresOf(t, ref, r.Derive()[0])
		if *got.Error.SQNR != *want.Error.SQNR || *got.Error.Max != *want.Error.Max || *got.Sparsity != *want.Sparsity {
			t.Errorf("chunks of %d: got %+v, want %+v", chunk, got.Error, want.Error)
		}
	}
}

func TestCompareReportsShortPayloads(t *testing.T) {
	e := ir.NewEval(t.TempDir())
	defer e.Close()
	short := &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{4}},
		Source: ir.Span{R: bytes.NewReader(make([]byte, 9))}}
	whole := weight("", []int64{4}, 1, 2, 3, 4)
	for _, p := range []pair{{short, whole}, {whole, short}} {
		if _, err := compare(t.Context(), e, p, nil); err == nil {
			t.Error("a payload that ends early was compared")
		}
	}
}
