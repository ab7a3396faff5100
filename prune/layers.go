package prune

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// Layers removes layers from a model that repeats one: layers of a transformer, residual blocks of a stage. Inputs and
// outputs of the graph that each layer has, such as the past and present keys of a decoder, are removed with it, and
// the others are renumbered. The layers to keep are spread evenly, as those of DistilBERT (Sanh et al. 2019,
// arXiv:1910.01108, section 3), or chosen by samples. The model requires fine-tuning afterwards.
type Layers struct {
	pass.Selection
	// Amount is the fraction of the layers of each kind that is removed, above 0 up to 1; 0 is the default.
	Amount float64 `flag:"amount" default:"0.5" usage:"'fraction' of the layers of each kind that is removed, above 0 up to 1; one always stays"`
	// Importance is spread (the layers that stay are evenly spaced) or cosine (block influence: one minus the mean
	// cosine similarity of a layer's input and output in calibration samples; Men et al. 2024, arXiv:2403.03853); empty
	// for spread.
	Importance string `flag:"importance" default:"spread" enum:"spread,cosine" usage:"'rule' that chooses the layers to keep: spread (evenly spaced ones), or cosine (those that change their input most in calibration samples, by cosine similarity)"`
	pass.Calibration

	// AllowUnchanged accepts models without repeated layers.
	AllowUnchanged bool `flag:"allow-unchanged" usage:"copy a model without repeated layers (default: an error, exit code 4)"`
}

var layersMethod = &pass.Method{
	Name:    "layers",
	Command: "prune",
	Doc:     "remove some of the layers that a model repeats, such as those of a transformer",
	Stage:   pass.Prune,
	Shrinks: true,
	Repeats: true,
	New:     func() pass.Options { return &Layers{} },
}

// Method describes the method.
func (Layers) Method() *pass.Method { return layersMethod }

// Check reports an amount that is not a fraction, and an unknown importance.
func (o Layers) Check() error {
	if err := o.checkImportance(); err != nil {
		return err
	}
	return checkAmount(o.Amount)
}

// Run implements pass.Options.
func (o Layers) Run(ctx context.Context, s *pass.Step) error {
	nodes, err := s.Model.Graph.Order()
	if err != nil {
		return err
	}
	weights := pass.Weights(s.Model)
	consumers, before := map[*ir.Value][]*ir.Node{}, map[*ir.Value]*ir.Tensor{}
	for _, w := range weights {
		// Before anything is removed: the rows of removed weights name their consumers.
		consumers[w], before[w] = pass.Consumers(w), w.Const
	}
	found, stay := repetitions(nodes), pass.LayerKept
	if len(found) == 0 {
		if !o.AllowUnchanged {
			return fmt.Errorf("%s: the model has no repeated layers; --allow-unchanged copies it", pass.NoRepeatedLayers)
		}
		stay = pass.NoRepeatedLayers
	}
	influences, err := o.influences(ctx, s, found)
	if err != nil {
		return err
	}
	notes, submodels := map[*ir.Value]pass.Reason{}, submodelsOf(s.Model.Graph, nodes)
	var removed []pass.RemovedLayers
	for i, r := range found {
		kept := o.keptPositions(len(r))
		if list := influences[&found[i]]; list != nil {
			kept = mostImportant(list, len(kept))
		}
		if len(kept) < len(r) {
			l := r.removal(kept)
			l.Submodel = submodels[r[0].last]
			removed = append(removed, l)
		}
		r.removeOthers(kept)
		for _, w := range weights {
			if _, ok := notes[w]; !ok && w.Removed() {
				notes[w] = pass.Reason{Code: pass.LayerRemoved, Detail: fmt.Sprintf("%d of %d kept", len(kept), len(r))}
			}
		}
	}
	s.Ledger.LayersRemoved(removed)
	for _, w := range weights {
		if w.Removed() {
			s.Ledger.Changed(w, before[w], consumers[w], pass.Row{Form: pass.Smaller, Notes: pass.Notes(notes[w])})
			continue
		}
		s.Ledger.Skip(w, consumers[w], pass.Reason{Code: stay})
	}
	return nil
}

// keptPositions are the positions of the layers to keep of n.
func (o Layers) keptPositions(n int) []int {
	stay := max(1, n-int(prunedCount(o.Amount, int64(n))))
	kept := make([]int, stay)
	for i := range kept {
		kept[i] = evenly(i, stay, n)
	}
	return kept
}

// removeOthers removes the other layers of a repetition: the input of a removed layer becomes that of the next one.
func (r repetition) removeOthers(kept []int) {
	r.renumber(kept)
	enters := r[0].before
	for i, layer := range r {
		if slices.Contains(kept, i) {
			enters = layer.last
			continue
		}
		layer.bypass(enters)
		layer.drop()
	}
}

// bypass lets the consumers of the layer read the results of another node.
func (s segment) bypass(before *ir.Node) {
	if s.normalization != "" && operator.Of(s.last).Sum != nil {
		normalize := s.normalizer(before)
		if sum := sumOf(s.last); sum != nil {
			sum.ReplaceUses(stream(before))
		}
		s.last.Outputs[0].ReplaceUses(normalize.Outputs[0])
		takeScale(normalize, s.last)
		return
	}
	for i, v := range s.last.Outputs {
		switch {
		case i == 0:
			v.ReplaceUses(stream(before))
		case v != nil && len(v.Uses()) > 0:
			v.ReplaceUses(before.Outputs[i])
		}
	}
}

// normalizer is the node that normalizes the result of n for the layer after it: n itself, or a consumer.
func (s segment) normalizer(n *ir.Node) *ir.Node {
	if sumOf(n) != nil {
		return n
	}
	for _, u := range stream(n).Uses() {
		if u.Node != nil && normalizes(u.Node, s.normalization, stream(n)) {
			return u.Node
		}
	}
	panic("a layer of this kind normalizes its input")
}

// takeScale gives the normalization to the scale and shift of from.
func takeScale(to, from *ir.Node) {
	for _, role := range []operator.Role{operator.Gain, operator.Shift} {
		for k, i := range operator.Of(to).With(role) {
			old := to.Input(i)
			to.SetInput(i, from.Input(operator.Of(from).With(role)[k]))
			if old != nil {
				old.Drop()
			}
		}
	}
}

// drop removes the nodes of the layer.
func (s segment) drop() {
	for _, n := range slices.Backward(s.nodes) {
		for _, v := range n.Outputs {
			if v != nil {
				v.Drop()
			}
		}
	}
}

// evenly is the i-th of the layers to keep of n: the first, the last, and others evenly between. A single layer is the
// last one, whose output has the name that its consumers use.
func evenly(i, stay, n int) int {
	if stay == 1 {
		return n - 1
	}
	return int(math.RoundToEven(float64(i) * float64(n-1) / float64(stay-1)))
}
