package backward

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
)

// rowTrials are nodes of the operators on rows: activations, softmax, layer normalization, Gather.
func rowTrials() []trial {
	places := ir.NewArray(ir.Int64, 300)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range ir.View[int64](places) {
		ir.View[int64](places)[i] = r.Int64N(200) - 100
	}
	axis := func(i int64) []*ir.Attr { return []*ir.Attr{ir.IntAttr("axis", i)} }
	x, dy := gaussian(1, 40, 7, 333), gaussian(2, 40, 7, 333)
	list := []trial{
		{"ReluGrad", nil, []*ir.Array{x, dy}, 1},
		{"ClipGrad", []*ir.Attr{ir.FloatAttr("min", -0.25), ir.FloatAttr("max", 0.5)}, []*ir.Array{x, dy}, 1},
		{"SoftmaxGrad", axis(-1), []*ir.Array{x, dy}, 1},
		{"SoftmaxGrad", axis(0), []*ir.Array{x, dy}, 1},
		{"LogSoftmaxGrad", axis(-1), []*ir.Array{gaussian(3, 9, 2000), gaussian(4, 9, 2000)}, 1},
		{"LogSoftmaxGrad", axis(1), []*ir.Array{x, dy}, 1},
		{"LayerNormGrad", axis(2), []*ir.Array{x, dy, gaussian(3, 40, 7, 1), gaussian(4, 333), gaussian(5, 40, 7, 1)},
			3},
		{"LayerNormGrad", axis(1), []*ir.Array{x, dy, gaussian(3, 40, 1, 1)}, 3},
		{"LayerNormGrad", axis(1), []*ir.Array{gaussian(1, 3000, 5), gaussian(2, 3000, 5), gaussian(3, 3000),
			gaussian(4, 5)}, 3},
		{"GatherGrad", []*ir.Attr{ir.IntsAttr("shape", 100, 900)}, []*ir.Array{places, gaussian(1, 300, 900)}, 1},
		{"GatherGrad", append(axis(1), ir.IntsAttr("shape", 3, 100, 2)), []*ir.Array{places, gaussian(1, 3, 300, 2)},
			1},
	}
	for _, d := range derivatives {
		if d.typ[0] != 'A' { // some operators starting with A are not defined for all numbers
			list = append(list, trial{d.typ + "Grad", nil, []*ir.Array{x, dy}, 1})
		}
	}
	return list
}

// attentionTrials are an attention of these sizes and its gradient.
func attentionTrials(t *testing.T, heads, queries, keys, size, value int64, mask *ir.Array, attrs ...*ir.Attr) []trial {
	q, k, v := gaussian(1, heads, queries, size), gaussian(2, heads, keys, size), gaussian(3, heads, keys, value)
	attrs = append(attrs, ir.FloatAttr("scale", float32(1/math.Sqrt(float64(max(size, 1))))))
	return attentionOn(t, q, k, v, mask, attrs...)
}

func attentionOn(t *testing.T, q, k, v, mask *ir.Array, attrs ...*ir.Attr) []trial {
	keep := trial{"AttentionKeep", attrs, []*ir.Array{q, k, v, mask}, 2}
	out := keep.must(t, 1)
	return []trial{keep, {"AttentionGrad", attrs, []*ir.Array{q, k, v, mask, out[0], out[1],
		gaussian(4, out[0].Shape...)}, 3}}
}

func TestRowGradientsEqualDouble(t *testing.T) {
	list := rowTrials()
	list = append(list, attentionTrials(t, 3, 500, 700, 16, 24, gaussian(5, 500, 700))...)
	list = append(list, attentionTrials(t, 1, 100, 3000, 8, 8, gaussian(5, 3000))...)
	list = append(list, attentionTrials(t, 7, 33, 47, 32, 32, nil, ir.IntsAttr("permY", 1, 0, 2))...)
	list = append(list, attentionTrials(t, 1, 49, 1024, 64, 64, nil)...)
	list = append(list, attentionTrials(t, 2, 1, 1, 1, 1, gaussian(5, 2, 1, 1))...)
	list = append(list, groupedTrials(t)...)
	for _, c := range list {
		c.agrees(t)
	}
}

// groupedTrials are attention with groups of heads, windows and softcap.
func groupedTrials(t *testing.T) []trial {
	window := func(left, right, offset int64) []*ir.Attr {
		return []*ir.Attr{ir.IntAttr("left_window_size", left), ir.IntAttr("right_window_size", right),
			ir.IntAttr("offset", offset), ir.FloatAttr("scale", 0.3)}
	}
	list := attentionOn(t, gaussian(1, 2, 3, 301, 8), gaussian(2, 2, 1, 301, 8), gaussian(3, 2, 1, 301, 5),
		gaussian(4, 301), append(window(-1, 0, 0), ir.FloatAttr("softcap", 2))...)
	list = append(list, attentionOn(t, gaussian(1, 2, 4, 260, 8), gaussian(2, 2, 1, 700, 8),
		gaussian(3, 2, 1, 700, 8), nil, window(30, 2, 440)...)...)
	// the first queries are before all keys, the last ones after them
	return append(list, attentionOn(t, gaussian(1, 3, 600, 4), gaussian(2, 3, 90, 4), gaussian(3, 3, 90, 4), nil,
		window(10, 0, -260)...)...)
}

// The work of attention does not grow with the product of queries and keys.
func TestAttentionMemoryIsLinear(t *testing.T) {
	bytesOf := func(tokens int64) int64 {
		x, l := ir.NewArray(ir.Float, 1, tokens, 4), ir.NewArray(ir.Float, 1, tokens)
		return attentionWork(true)(op.NewNode(ir.OpID{}, 1, nil, nil), []*ir.Array{x, x, x, nil, x, l, x}, 2)
	}
	if short, long := bytesOf(1000), bytesOf(4000); long > 5*short {
		t.Errorf("4000 tokens need %d bytes, 1000 need %d", long, short)
	}
}

// ReluGrad is 0 where the output is 0 or -0, and dy where the output is positive, infinities and NaN included.
func TestReluGradOfSpecialValues(t *testing.T) {
	inf, nan, tiny := float32(math.Inf(1)), float32(math.NaN()), float32(math.SmallestNonzeroFloat32)
	y := []float32{1, 0, float32(math.Copysign(0, -1)), tiny, inf, 0, 0}
	dy := []float32{2, 3, 4, 5, 6, inf, nan}
	dx := make([]float32, len(y))
	reluSingles(dx, y, dy)
	for i, want := range []float32{2, 0, 0, 5, 6, 0, 0} {
		if dx[i] != want {
			t.Errorf("element %d is %v, want %v", i, dx[i], want)
		}
	}
}
