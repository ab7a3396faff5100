package weights

import (
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// A Weight is a constant and its consumers.
type Weight struct {
	Base          *ir.Value
	Consumers     []*Consumer
	OtherConsumer string // a use that is no Consumer, or ""
}

// Find returns constants with their products, and Gathers if embeddings is set, in the order of nodes.
func Find(c *pass.Context, embeddings bool) []*Weight {
	var ws []*Weight
	by := map[*ir.Value]*Weight{}
	for n := range c.Model.Nodes() {
		for _, s := range ConsumersAt(c, n, embeddings) {
			o := c.Trace(n.Input(s.Use.Index))
			w := by[o.Base]
			if w == nil {
				w = &Weight{Base: o.Base}
				by[o.Base] = w
				ws = append(ws, w)
			}
			w.Consumers = append(w.Consumers, s)
		}
	}
	for _, w := range ws {
		w.OtherConsumer = w.uncovered()
	}
	return ws
}

// uncovered names a use of w's constant that is no Consumer.
func (w *Weight) uncovered() string {
	for _, l := range pass.Leaves(w.Base) {
		if l.Node == nil {
			return "a graph output"
		}
		if !slices.ContainsFunc(w.Consumers, func(s *Consumer) bool { return s.Use.Node == l.Node && s.Use.Index == l.Index }) {
			return pass.Labels([]*ir.Node{l.Node})[0]
		}
	}
	return ""
}

func (w *Weight) Nodes() []*ir.Node {
	var ns []*ir.Node
	for _, s := range w.Consumers {
		if !slices.Contains(ns, s.Node) {
			ns = append(ns, s.Node)
		}
	}
	return ns
}

// Unsupported is the first reason why a consumer cannot be rewritten.
func (w *Weight) Unsupported() string {
	for _, s := range w.Consumers {
		if s.Unsupported != "" {
			return s.Unsupported
		}
	}
	return ""
}
