package backward

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/internal/engine/op/optest"
)

// Nodes with random defects return an error, or a result.
func TestMalformedNodesDoNotPanic(t *testing.T) {
	for i, c := range slices.Concat(trials(t), rowTrials(), attentionTrials(t, 2, 3, 4, 5, 6, nil), groupedTrials(t)[:2]) {
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
	Ints:  []string{"group", "axis", "left_window_size", "right_window_size", "offset"},
	Lists: []string{"pads", "strides", "dilations", "kernel_shape", "output_padding", "output_shape", "shape"},
}
