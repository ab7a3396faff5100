package conv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// A sample is a valid node.
type sample struct {
	name    string
	version int64
	a       attrs
	in      []*ir.Array
}

func samples() []sample {
	var list []sample
	for _, l := range layers() {
		x, w, b := random(1, l.x...), random(2, l.w...), random(3, l.w[0])
		list = append(list, sample{"Conv", 22, l.a, []*ir.Array{x, w, b}}, sample{"FusedConv", 1, l.a, []*ir.Array{x, w, b, nil}})
		codes, zero, scale := ir.NewArray(ir.Uint8, l.x...), ir.NewArray(ir.Uint8, 1), random(4, 1)
		list = append(list, sample{"QuantizedConv", 1, l.a, []*ir.Array{codes, w, b, scale, zero, scale, zero}})
		list = append(list, sample{"ConvTranspose", 22, attrs{"group": l.a["group"]}, []*ir.Array{w, w}})
	}
	for _, l := range pools() {
		for _, name := range []string{"MaxPool", "AveragePool", "LpPool", "GlobalLpPool"} {
			list = append(list, sample{name, 22, l.a, []*ir.Array{random(1, l.x...)}})
		}
	}
	square := random(1, 1, 2, 4, 4)
	sizes := ir.ArrayOf([]int64{1, 2, 3, 5}, 4)
	return append(list,
		sample{"Resize", 19, attrs{"mode": "linear"}, []*ir.Array{square, nil, nil, sizes}},
		sample{"Resize", 19, attrs{"mode": "nearest"}, []*ir.Array{square, nil, random(2, 4)}},
		sample{"Resize", 10, attrs{"mode": "linear"}, []*ir.Array{square, random(2, 4)}},
		sample{"Resize", 13, attrs{"coordinate_transformation_mode": "tf_crop_and_resize"}, []*ir.Array{square, random(2, 8), nil, sizes}},
		sample{"Upsample", 7, attrs{"scales": []float32{1, 1, 2, 2}}, []*ir.Array{square}},
		sample{"GridSample", 20, attrs{"mode": "cubic"}, []*ir.Array{square, random(1, 1, 3, 3, 2)}},
		sample{"AffineGrid", 20, attrs{}, []*ir.Array{random(1, 1, 2, 3), sizes}},
		sample{"RoiAlign", 16, attrs{"output_height": 2}, []*ir.Array{square, random(2, 3, 4), ir.ArrayOf([]int64{0, 0, 0}, 3)}},
		sample{"MaxRoiPool", 1, attrs{"pooled_shape": []int{2, 2}}, []*ir.Array{square, random(2, 3, 5)}},
		sample{"MaxUnpool", 11, attrs{"kernel_shape": []int{2, 2}}, []*ir.Array{square, ir.NewArray(ir.Int64, 1, 2, 4, 4), nil}},
		sample{"DeformConv", 19, attrs{}, []*ir.Array{square, random(1, 3, 2, 2, 2), random(2, 1, 8, 3, 3), nil, random(3, 1, 4, 3, 3)}},
	)
}

// Nodes with random defects return an error, or a result.
func TestMalformedNodesDoNotPanic(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 30
	}
	for i, s := range samples() {
		for seed := range seeds {
			broken := s.breakIt(rand.New(rand.NewPCG(seed, uint64(i))))
			if text := broken.panics(); text != "" {
				t.Fatalf("%s %v of %v: %s", broken.name, broken.a, broken.in, text)
			}
		}
	}
}

func (s sample) breakIt(r *rand.Rand) sample {
	odd := []int{-1 << 40, -2, -1, 0, 1, 2, 3, 7, 1 << 20, 1 << 31, 1 << 62}
	a := attrs{}
	for name, v := range s.a {
		a[name] = v
	}
	for _, name := range []string{"pads", "strides", "dilations", "kernel_shape", "axes", "output_padding", "output_shape", "pooled_shape"} {
		if r.IntN(12) == 0 {
			list := make([]int, r.IntN(7))
			for i := range list {
				list[i] = odd[r.IntN(len(odd))]
			}
			a[name] = list
		}
	}
	for _, name := range []string{"group", "offset_group", "p", "ceil_mode", "sampling_ratio", "output_height", "storage_order", "antialias", "exclude_outside"} {
		if r.IntN(15) == 0 {
			a[name] = odd[r.IntN(len(odd))]
		}
	}
	for _, name := range []string{"mode", "auto_pad", "nearest_mode", "coordinate_transformation_mode", "padding_mode", "activation"} {
		if r.IntN(25) == 0 {
			a[name] = []string{"", "cubic", "SAME_UPPER", "tf_crop_and_resize", "no such thing"}[r.IntN(5)]
		}
	}
	in := append([]*ir.Array(nil), s.in...)
	for i := range in {
		if in[i] != nil && r.IntN(4) == 0 {
			in[i] = breakArray(r, in[i])
		}
	}
	return sample{s.name, s.version, a, in[:len(in)-r.IntN(2)*r.IntN(2)]}
}

func breakArray(r *rand.Rand, a *ir.Array) *ir.Array {
	shape := append([]int64(nil), a.Shape...)
	switch i := r.IntN(max(len(shape), 1)); {
	case r.IntN(8) == 0:
		return nil
	case r.IntN(8) == 0:
		return &ir.Array{Kind: ir.Sequence}
	case len(shape) > 0 && r.IntN(3) > 0:
		shape[i] = int64(r.IntN(6))
	case r.IntN(2) == 0:
		shape = shape[:i]
	default:
		shape = append(shape, 2)
	}
	types := []ir.DType{ir.Float, ir.Float, ir.Float, a.DType, a.DType, ir.Double, ir.Float16, ir.Uint8, ir.String, ir.Int4}
	b := ir.NewArray(types[r.IntN(len(types))], shape...)
	for i := range b.Data {
		b.Data[i] = byte(r.Uint32())
	}
	return b
}

// panics runs the node, first without data, and describes a panic or an invalid result.
func (s sample) panics() (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	row := rowOf(s.name, s.version)
	n := nodeOf(s.name, s.a)
	blind := make([]*ir.Array, len(s.in))
	for i, a := range s.in {
		if a != nil {
			blind[i] = &ir.Array{Kind: a.Kind, DType: a.DType, Shape: a.Shape}
		}
	}
	if _, err := row.Shape(n, blind); err != nil && err != op.ErrUnknown {
		return ""
	}
	specs, err := row.Shape(n, s.in)
	if err != nil {
		return ""
	}
	if specs[0].Valid() != nil || specs[0].Elems() > 1<<20 {
		return ""
	}
	_, _ = run(row, s.version, s.a, 2, 1, s.in)
	return ""
}
