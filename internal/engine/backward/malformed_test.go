package backward

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
	"github.com/mcompress/mcompress/ir"
)

// Nodes with random defects return an error, or a result.
func TestMalformedNodesDoNotPanic(t *testing.T) {
	for i, c := range slices.Concat(trials(t), rowTrials(), attentionTrials(t, 2, 3, 4, 5, 6, nil),
		groupedTrials(t)[:2], maskTrials(t)) {
		node := c.node(2)
		for seed := range uint64(40) {
			broken := node.Malformed(rand.New(rand.NewPCG(seed, uint64(i))), defects)
			if text := optest.Panic(optest.Row(Ops(), node), broken); text != "" {
				t.Fatalf("%v: %s", broken, text)
			}
		}
	}
}

var defects = optest.Defects{
	Ints: []string{"group", "axis", "left_window_size", "right_window_size", "offset"},
	Lists: []string{"pads", "strides", "dilations", "kernel_shape", "output_padding", "output_shape", "shape",
		"halves"},
}

// maskTrials are a mask of a tensor and the gradient from it.
func maskTrials(t *testing.T) []trial {
	v := gaussian(1, 3, 7, 13)
	mask := trial{"ActivationMask", nil, []*ir.Array{v, ir.ArrayOf([]float32{0}), ir.ArrayOf([]float32{1})}, 1}
	return []trial{mask, {"MaskedGrad", []*ir.Attr{ir.FloatAttr("off", 0.1)},
		[]*ir.Array{gaussian(2, 3, 7, 13), mask.must(t, 1)[0]}, 1}}
}
