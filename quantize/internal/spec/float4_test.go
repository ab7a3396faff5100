package spec

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/quanttest"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// The search over scales reduces the squared error of most blocks, and increases it for none.
func TestFloat4SearchesItsScales(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	k, plain := newFloat4Quantizer(kernel.E2M1, 32, 1), newFloat4Quantizer(kernel.E2M1, 32, 1)
	plain.peaks = float4Peaks[:1]
	x, y, better := make([]float32, 32), make([]float32, 32), 0
	errorOf := func(k *float4Quantizer) float64 {
		k.begin(x)
		if err := errors.Join(k.row(0, len(x)), k.finish()); err != nil {
			t.Fatal(err)
		}
		var scale [1]float32
		kernel.F32FromF16(scale[:], k.scales)
		kernel.E2M1.Decode(y, k.quantized, scale[0])
		sum := 0.
		for i, v := range x {
			sum += float64(v-y[i]) * float64(v-y[i])
		}
		return sum
	}
	for range 100 {
		for i := range x {
			x[i] = float32(random.NormFloat64())
		}
		found, least := errorOf(k), errorOf(plain)
		if found > least {
			t.Errorf("squared error %g, %g without search", found, least)
		}
		if found < least {
			better++
		}
	}
	if better < 50 {
		t.Errorf("only %d of 100 blocks are better than without search", better)
	}
}

// Weights that blocks represent exactly are restored exactly: multiples of a block's power of two, up to the largest
// 4-bit float.
func TestFloat4RestoresItsLevels(t *testing.T) {
	levels, random := []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}, rand.New(rand.NewPCG(9, 10))
	for _, c := range []struct {
		shape []int64
		axis  int
	}{{[]int64{32, 1}, 0}, {[]int64{37, 5}, 0}, {[]int64{5, 67}, 1}, {[]int64{3, 33, 7}, 1}} {
		var kept []int
		for i := range c.shape {
			if i != c.axis {
				kept = append(kept, i)
			}
		}
		along, inner := c.shape[c.axis], (ir.Spec{Shape: c.shape[c.axis+1:]}).Elems()
		x := make([]float32, (ir.Spec{Shape: c.shape}).Elems())
		for i := range x {
			at := int64(i) / inner % along
			size := float32(math.Ldexp(1, (i/int(inner)/int(along)+int(at/16)*3+i%int(inner))%7-3))
			x[i] = levels[random.IntN(len(levels))] * size
			if at%16 == 0 {
				x[i] = 6 * size
			}
			if random.IntN(2) == 0 {
				x[i] = -x[i]
			}
		}
		e := NewFloat4(Float4Type, &ir.Value{Const: quanttest.TensorOf(ir.Float, c.shape, x)}, kept, 16, true)
		parts, _, err := try(e.Recipe(), [][]byte{kernel.Bytes(x)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		restored, _, err := try(e.Restore([]*ir.Tensor{{}, {}}).Source.(ir.Output).Of, parts, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range kernel.Words[float32](restored[0]) {
			if v != x[i] {
				t.Fatalf("shape %v, axis %d: element %d is restored as %g, want %g", c.shape, c.axis, i, v, x[i])
			}
		}
	}
}

func TestFloat4BlocksWithoutPaddingDivideTheAxis(t *testing.T) {
	for _, c := range []struct {
		rows, block int64
		padding     bool
		want        int64 // 0: no blocks
	}{{400, 32, true, 32}, {400, 32, false, 16}, {64, 32, false, 32}, {36, 32, false, 0}} {
		v := &ir.Value{Const: &ir.Tensor{Spec: ir.Spec{DType: ir.Float, Shape: []int64{c.rows, 2}}}}
		got := int64(0)
		if e := NewFloat4(Float4Type, v, []int{1}, c.block, c.padding); e != nil {
			got = e.(*Float4Encoding).block
		}
		if got != c.want {
			t.Errorf("%d rows, block %d, padding %v: blocks of %d, want %d", c.rows, c.block, c.padding, got, c.want)
		}
	}
}
