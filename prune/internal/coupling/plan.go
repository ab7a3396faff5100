package coupling

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Plan is the groups of channels that can be removed together.
type Plan struct {
	*channelMap
	sources   []Source
	consumers []Source
	order     []*constant // in the order in which nodes read them

	Skipped []Skipped // constants with a use that is not supported, each once
}

// Skipped is a constant and the reason why its channels are not followed.
type Skipped struct {
	Value  *ir.Value
	Reason pass.Reason
}

// A Source is a constant that makes channels: the filters of a convolution, the matrix of a linear layer. A consumer is
// one that multiplies channels, at the indices of another axis.
type Source struct {
	Value    *ir.Value
	Node     *ir.Node
	Shape    []int64 // of Node's operand, but for a transposition
	Axis     int     // of Shape: one filter at each index
	Channels []Channel
}

// Find follows the channels of every graph of c's model: main graph, subgraphs and functions. It changes nothing.
// Constants for which unfit returns a reason are not pruned. Graphs with cycles are an error.
func Find(s *pass.Step, unfit func(*ir.Value) pass.Reason) (*Plan, error) {
	ch := &channelMap{classes: classes{reasons: map[Channel]pass.Reason{}}, axes: map[*ir.Value]*axis{},
		blockSizes: map[Channel]int{}}
	k := &constants{
		channels: ch, step: s, unfit: unfit,
		byValue: map[*ir.Value]*constant{}, used: map[ir.Use]bool{}, skipped: map[*ir.Value]bool{},
	}
	p := &propagation{channelMap: ch, constants: k, shapes: newShapes(s)}
	// Before the nodes, which read the channels of their inputs.
	p.caches(s.Model.Graph)
	for g := range s.Model.Graphs() {
		nodes, err := g.Order()
		if err != nil {
			return nil, fmt.Errorf("graph %q: %w", g.Name, err)
		}
		for _, n := range nodes {
			p.applyRule(n)
		}
	}
	// After all graphs: classes are complete only then.
	p.keepBorders()
	return &Plan{channelMap: ch, sources: k.sources, consumers: k.consumers, order: k.order, Skipped: k.list}, nil
}
