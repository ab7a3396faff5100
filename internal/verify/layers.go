package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

// LayerComparison is the values that have the same names in two main graphs.
type LayerComparison struct {
	Names []string // in the order of the nodes of the first model

	nodes         []*ir.Node        // of the first model, in order
	equalNodes    map[*ir.Node]bool // nodes that are equal in both models
	droppedValues int               // maximum number of values of a sample that were not compared
	comparedBytes int64             // compared so far
}

// CommonValues finds the values that a and b have in common and that outputs of both depend on, outputs included:
// sessions of users compute no others.
func CommonValues(ctx context.Context, a, b *ir.Model) (*LayerComparison, error) {
	nodes, err := a.Graph.Live()
	if err != nil {
		return nil, err
	}
	others, err := b.Graph.Live()
	if err != nil {
		return nil, err
	}
	makers := map[string]*ir.Node{}
	for _, n := range others {
		for _, v := range n.Outputs {
			if v != nil && !v.Ambiguous {
				makers[v.Name] = n
			}
		}
	}
	eval := ir.NewEval("")
	defer eval.Close()
	s := &LayerComparison{nodes: nodes, equalNodes: map[*ir.Node]bool{}}
	for _, n := range nodes {
		for _, v := range n.Outputs {
			if v == nil || v.Ambiguous || makers[v.Name] == nil {
				continue
			}
			s.Names = append(s.Names, v.Name)
			s.equalNodes[n] = sameNode(ctx, eval, n, makers[v.Name])
		}
	}
	return s, nil
}

// EarlyBytes bounds the copies of values that the first model computes before the second one reaches them.
const EarlyBytes = 64 << 20

// A watcher passes inner values to visit when they are computed; engine.Interpreter is one.
type watcher interface {
	Watch(ctx context.Context, in map[string]*ir.Array, fetch []string, visit func(name string, a *ir.Array) error) error
}

// errStopped ends the run of the first model when the second one has ended.
var errStopped = errors.New("stopped")

// layerSamples is the number of samples on which layers are compared: enough to rank them.
const layerSamples = 8

// Compare adds the layers to r: the values inside a and b, compared on the first samples of set, in runs of batch
// of them. The sessions retain the values, so that they do not fuse operators across them: they are others than
// those whose outputs are compared, which users run.
func (s *LayerComparison) Compare(ctx context.Context, a, b engine.Session, set *dataset.Set, batch int,
	r *verification.Result) error {
	by, state := map[string]*sums{}, dataset.NewState(statePairs(a, set))
	for batch, err := range set.Sequences(ctx, dataset.Order{Size: set.Size(batch), Reuse: true}) {
		if err != nil {
			return err
		}
		if batch.First >= layerSamples || s.comparedBytes > maxLayerBytes {
			break
		}
		if !state.Starts(batch) {
			continue
		}
		if err := s.compareBatch(ctx, a, b, batch, by); err != nil {
			return err
		}
	}
	r.Layers, r.Breaks = s.listLayers(by)
	if note := s.droppedNote(); note != "" {
		r.Notes = append(r.Notes, note)
	}
	return nil
}

// maxLayerBytes bounds the time of comparing layers: beyond it there are no further samples.
const maxLayerBytes = 256 << 20

// compareBatch accumulates the errors of the shared values on one batch in one run of each model: the first one is
// continued until it has computed the value that the second one has reached.
func (s *LayerComparison) compareBatch(ctx context.Context, a, b engine.Session, batch *dataset.Batch,
	by map[string]*sums) error {
	in := batch.Inputs
	padding := NewPadding(a, batch)
	first, firstOK := a.(watcher)
	second, secondOK := b.(watcher)
	if !firstOK || !secondOK {
		return errors.New("the backend does not return values inside a graph")
	}
	var failed error
	// The first run is a coroutine of the second one, so that only values whose order differs are copied.
	next, stop := iter.Pull2(func(yield func(string, *ir.Array) bool) {
		failed = first.Watch(ctx, in, s.Names, func(name string, x *ir.Array) error {
			if !yield(name, x) {
				return errStopped
			}
			return nil
		})
	})
	defer stop()
	e := &earlyValues{next: next, free: EarlyBytes, values: map[string]*ir.Array{}, dropped: map[string]bool{}}
	err := second.Watch(ctx, InputsOf(b, in), s.Names, func(name string, got *ir.Array) error {
		if want := e.valueOf(name); want != nil {
			measure(by, padding, name, want, got)
			s.comparedBytes += int64(len(want.Data))
		}
		return failed
	})
	s.droppedValues = max(s.droppedValues, len(e.dropped))
	switch {
	case failed != nil:
		return &SideError{First, failed}
	case err != nil:
		return &SideError{Second, err}
	}
	return nil
}

// earlyValues are values of the first model that the second one has not reached yet.
type earlyValues struct {
	next    func() (string, *ir.Array, bool)
	free    int64 // bytes left for copies
	values  map[string]*ir.Array
	dropped map[string]bool // without a copy
}

// valueOf continues the run up to the named value, nil if there is none.
func (e *earlyValues) valueOf(name string) *ir.Array {
	if x := e.values[name]; x != nil {
		e.free += int64(len(x.Data))
		delete(e.values, name)
		return x
	}
	for !e.dropped[name] {
		at, x, ok := e.next()
		switch {
		case !ok:
			return nil
		case at == name:
			return x
		case int64(len(x.Data)) > e.free:
			e.dropped[at] = true
		default:
			e.free -= int64(len(x.Data))
			// The array is part of the arena of the run, which goes on.
			e.values[at] = x.Clone()
		}
	}
	return nil
}

// droppedNote describes the layers that could not be compared; empty if there are none.
func (s *LayerComparison) droppedNote() string {
	if s.droppedValues == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d layers were not compared: the models compute them in another order",
		s.droppedValues, len(s.Names))
}

// measure accumulates a value without padding. It skips values that are not float, or that differ in shape between
// the models.
func measure(by map[string]*sums, padding *Padding, name string, want, got *ir.Array) {
	if want.Kind != ir.Dense || got.Kind != ir.Dense || !measurable(want, got) || !slices.Equal(want.Shape, got.Shape) {
		return
	}
	if by[name] == nil {
		by[name] = &sums{}
	}
	for want, got := range padding.Parts(name, want, got) {
		by[name].add(want, got)
	}
}

// measurable reports whether both are numeric floats.
func measurable(want, got *ir.Array) bool {
	for _, a := range []*ir.Array{want, got} {
		if !a.DType.IsFloat() || number.Check(a.DType) != nil {
			return false
		}
	}
	return true
}

// listLayers is the measured layers, in the order of the nodes, and the layer with the largest increase
// of the noise-to-signal ratio over its noisiest input. A node that is equal in both models adds
// no noise, whatever its gain; a node without measured outputs propagates the noise of its inputs.
func (s *LayerComparison) listLayers(by map[string]*sums) ([]verification.Layer, *verification.Break) {
	noise := map[*ir.Value]float64{}
	var layers []verification.Layer
	var breaks *verification.Break
	var breaking *ir.Node
	most := 0.0
	for _, n := range s.nodes {
		reaches := 0.0
		for _, v := range n.Inputs() {
			if v != nil {
				reaches = max(reaches, noise[v])
			}
		}
		for _, v := range n.Outputs {
			if v == nil {
				continue
			}
			// This remains for values that were not measured.
			noise[v] = reaches
			m := by[v.Name]
			if m == nil {
				continue
			}
			l := verification.Layer{Value: v.Name, Node: n.Label(), Op: n.Op.String(), Module: n.Module, Errors: m.errors()}
			layers = append(layers, l)
			noise[v] = relative(l.Errors.DB())
			if added := noise[v] - reaches; added > most && !s.equalNodes[n] {
				most, breaking = added, n
				breaks = &verification.Break{Value: l.Value, Node: l.Node, Op: l.Op, Module: l.Module,
					From: rounded(-10*math.Log10(reaches), 3), To: l.Errors.SQNR}
			}
		}
	}
	if breaks != nil {
		breaks.Nodes = s.neighbors(breaking, breaks.Value, by)
	}
	return layers, breaks
}

// relative is the ratio of noise to signal power: 0 where undefined, the maximum where there is noise
// without signal.
func relative(db float64) float64 {
	switch {
	case math.IsNaN(db):
		return 0
	// The difference of two infinite ratios would be NaN.
	case math.IsInf(db, -1):
		return math.MaxFloat64
	}
	return math.Pow(10, -db/10)
}
