package quant

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A sample is a valid node.
type sample struct {
	name string
	a    attrs
	in   []*ir.Array
}

func samples() []sample {
	u8, i8 := quantizedValues(9, ir.Uint8, 1), quantizedValues(9, ir.Int8, 1)
	a, b := quantizedValues(1, ir.Uint8, 5, 9), quantizedValues(2, ir.Int8, 9, 6)
	x := quantizedValues(1, ir.Uint8, 1, 4, 5, 6)
	s := one(0.5)
	list := []sample{
		{"QuantizeLinear", attrs{"axis": 1}, []*ir.Array{random(1, 3, 4, 5), scale(2, 4), quantizedValues(3, ir.Int8, 4)}},
		{"QuantizeLinear", attrs{"axis": 1, "block_size": 2}, []*ir.Array{random(1, 3, 4, 5), scale(2, 3, 2, 5), nil}},
		{"DequantizeLinear", attrs{"axis": 1}, []*ir.Array{quantizedValues(1, ir.Int4, 3, 4, 5), scale(2, 4), quantizedValues(3, ir.Int4, 4)}},
		{"DequantizeLinear", nil, []*ir.Array{quantizedValues(1, ir.Float8E5M2, 3, 4), s, nil}},
		{"DynamicQuantizeLinear", nil, []*ir.Array{random(1, 5)}},
		{"MatMulInteger", nil, []*ir.Array{a, b, u8, i8}},
		{"MatMulInteger", attrs{"transA": 1, "transB": 1}, []*ir.Array{quantizedValues(1, ir.Uint8, 4), quantizedValues(2, ir.Uint8, 8, 2, 1, 4)}},
		{"QLinearMatMul", nil, []*ir.Array{a, s, u8, b, s, i8, s, u8}},
		{"MatMulIntegerToFloat", nil, []*ir.Array{a, b, s, s, u8, i8, random(1, 6)}},
		{"DynamicQuantizeMatMul", nil, []*ir.Array{random(1, 5, 9), b, s, i8, random(1, 6)}},
		{"QGemm", attrs{"transA": 0}, []*ir.Array{a, s, u8, b, s, i8, ir.NewArray(ir.Int32, 6), s, u8}},
		{"MatMulNBits", attrs{"K": 40, "N": 6, "block_size": 32}, []*ir.Array{random(1, 3, 40), quantizedValues(2, ir.Uint8, 6, 2, 16), scale(3, 6, 2), nil, nil, random(1, 6)}},
		{"QLinearAdd", nil, []*ir.Array{a, s, u8, a, s, u8, s, u8}},
		{"QLinearSigmoid", nil, []*ir.Array{a, s, u8, s, u8}},
		{"QLinearConcat", attrs{"axis": 1}, []*ir.Array{s, u8, a, s, u8, a, s, u8}},
		{"QLinearGlobalAveragePool", nil, []*ir.Array{x, s, u8, s, u8}},
		{"QLinearAveragePool", attrs{"kernel_shape": []int{2, 2}}, []*ir.Array{x, s, u8, s, u8}},
	}
	for _, l := range layers() {
		x, w := quantizedValues(1, ir.Uint8, l.x...), quantizedValues(2, ir.Int8, l.w...)
		list = append(list, sample{"ConvInteger", l.a, []*ir.Array{x, w, u8, i8}},
			sample{"QLinearConv", l.a, []*ir.Array{x, s, u8, w, s, i8, s, u8, ir.NewArray(ir.Int32, l.w[0])}})
	}
	return list
}

// Nodes with random defects return an error, or a result.
func TestMalformedNodesDoNotPanic(t *testing.T) {
	for i, s := range samples() {
		for seed := range uint64(400) {
			broken := s.breakIt(rand.New(rand.NewPCG(seed, uint64(i))))
			if text := broken.panics(seed%2 == 0); text != "" {
				t.Fatalf("%s %v of %v: %s", broken.name, broken.a, broken.in, text)
			}
		}
	}
}

func (s sample) breakIt(r *rand.Rand) sample {
	odd := []int{-1 << 40, -2, -1, 0, 1, 2, 3, 7, 16, 23, 1 << 20, 1 << 31, 1 << 62}
	a := attrs{}
	for name, v := range s.a {
		a[name] = v
	}
	for _, name := range []string{"axis", "block_size", "output_dtype", "precision", "K", "N", "bits", "group", "transA", "transB", "channels_last"} {
		if r.IntN(12) == 0 {
			a[name] = odd[r.IntN(len(odd))]
		}
	}
	for _, name := range []string{"pads", "strides", "kernel_shape"} {
		if r.IntN(20) == 0 {
			a[name] = []int{odd[r.IntN(len(odd))], odd[r.IntN(len(odd))]}
		}
	}
	in := append([]*ir.Array(nil), s.in...)
	for i := range in {
		if in[i] != nil && r.IntN(6) == 0 {
			in[i] = breakArray(r, in[i])
		}
	}
	return sample{s.name, a, in[:len(in)-r.IntN(2)*r.IntN(2)]}
}

func breakArray(r *rand.Rand, a *ir.Array) *ir.Array {
	shape := append([]int64(nil), a.Shape...)
	switch i := r.IntN(max(len(shape), 1)); {
	case r.IntN(8) == 0:
		return nil
	case r.IntN(8) == 0:
		return &ir.Array{Kind: ir.Sequence}
	case len(shape) > 0 && r.IntN(3) > 0:
		shape[i] = int64(r.IntN(7))
	case r.IntN(2) == 0 && len(shape) > 0:
		shape = shape[:i]
	default:
		shape = append(shape, int64(r.IntN(3)))
	}
	types := []ir.DType{a.DType, a.DType, a.DType, ir.Float, ir.Float16, ir.Uint8, ir.Int8, ir.Int32, ir.String, ir.Int4, ir.Float4E2M1, ir.Double, ir.Float8E8M0}
	b := ir.NewArray(types[r.IntN(len(types))], shape...)
	for i := range b.Data {
		b.Data[i] = byte(r.Uint32())
	}
	return b
}

// panics runs the node, first without data, and describes a panic or an invalid result. All inputs but the first may be constants.
func (s sample) panics(prepared bool) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	row := rowOf(s.name)
	n := nodeOf(row, s.a, len(s.in), 1)
	blind := make([]*ir.Array, len(s.in))
	var constant []int
	for i, a := range s.in {
		if a != nil {
			blind[i] = &ir.Array{Kind: a.Kind, DType: a.DType, Shape: a.Shape}
		}
		if prepared && i > 0 && row.Prepare != nil {
			constant = append(constant, i)
		}
	}
	if _, err := row.Shape(n, blind); err != nil && err != op.ErrUnknown {
		return ""
	}
	specs, err := row.Shape(n, s.in)
	if err != nil || specs[0].Valid() != nil || specs[0].Elems() > 1<<20 {
		return ""
	}
	_, _ = compute(row, s.a, 2, 1, s.in, constant...)
	return ""
}
