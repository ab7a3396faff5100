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
	OtherConsumer pass.Reason // of a use that is no Consumer; none if there is no such use
}

// Find returns constants with their products, and Gathers if embeddings is set, in the order of nodes.
func Find(s *pass.Step, embeddings bool) []*Weight {
	var ws []*Weight
	for _, u := range pass.UsedWeights(s.Model, func(k pass.Consumer) bool { return newConsumer(k, embeddings) != nil }) {
		w := &Weight{Base: u.Value}
		for _, k := range u.Consumers {
			w.Consumers = append(w.Consumers, newConsumer(k, embeddings))
		}
		w.OtherConsumer = w.uncovered()
		ws = append(ws, w)
	}
	return ws
}

// uncovered is the reason of a use of w's constant that is no Consumer.
func (w *Weight) uncovered() pass.Reason {
	for _, l := range pass.LeafUses(w.Base) {
		// Stored twice, as floats too, the weight would make the file larger.
		if l.Node == nil {
			return pass.Reason{Code: pass.GraphOutput}
		}
		if !slices.ContainsFunc(w.Consumers, func(s *Consumer) bool {
			return s.Use.Node == l.Node && s.Use.Index == l.Index
		}) {
			return pass.Reason{Code: pass.Shared}.At(l.Node)
		}
	}
	return pass.Reason{}
}

// Nodes are the nodes of the consumers, each once.
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
func (w *Weight) Unsupported() pass.Reason {
	for _, s := range w.Consumers {
		if !s.Unsupported.None() {
			return s.Unsupported
		}
	}
	return pass.Reason{}
}
