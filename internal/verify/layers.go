package verify

import (
	"context"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/number"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/report/verification"
)

// Shared is the values that have the same names in two main graphs.
type Shared struct {
	Names []string // in the order of the nodes of the first model

	nodes []*ir.Node        // of the first model, in order
	same  map[*ir.Node]bool // nodes that are equal in both models
}

// CommonValues finds the values that a and b have in common, outputs included.
func CommonValues(ctx context.Context, a, b *ir.Model) (*Shared, error) {
	makers := map[string]*ir.Node{}
	for n := range b.Graph.Nodes() {
		for _, v := range n.Outputs {
			if v != nil && !v.Ambiguous {
				makers[v.Name] = n
			}
		}
	}
	nodes, err := a.Graph.Order()
	if err != nil {
		return nil, err
	}
	eval := ir.NewEval("")
	defer eval.Close()
	s := &Shared{nodes: nodes, same: map[*ir.Node]bool{}}
	for _, n := range nodes {
		for _, v := range n.Outputs {
			if v == nil || v.Ambiguous || makers[v.Name] == nil {
				continue
			}
			s.Names = append(s.Names, v.Name)
			s.same[n] = sameNode(ctx, eval, n, makers[v.Name])
		}
	}
	return s, nil
}

// Values inside the graphs are fetched in chunks of this size, each in a run of its own,
// so that memory does not grow with the graph. Values of unknown size count as unknownSize.
const (
	fetchBytes  = 32 << 20
	unknownSize = fetchBytes / 16
)

// chunks divides the names into lists whose values one run may fetch.
func (s *Shared) chunks(a engine.Session, in map[string]*ir.Array) [][]string {
	sizes := sizesOf(a, in)
	var out [][]string
	bytes := int64(0)
	for _, name := range s.Names {
		n, known := sizes[name]
		if !known {
			n = unknownSize
		}
		if len(out) == 0 || bytes+n > fetchBytes {
			out, bytes = append(out, nil), 0
		}
		out[len(out)-1] = append(out[len(out)-1], name)
		bytes += n
	}
	return out
}

// sizesOf are the bytes of values inside a's graph, as far as a infers them.
func sizesOf(a engine.Session, in map[string]*ir.Array) map[string]int64 {
	specs := map[string]ir.Spec{}
	for name, x := range in {
		specs[name] = x.Spec()
	}
	inferrer, ok := a.(interface {
		Types(map[string]ir.Spec) (map[string]ir.Spec, error)
	})
	if !ok {
		return nil
	}
	types, err := inferrer.Types(specs)
	if err != nil {
		return nil
	}
	sizes := map[string]int64{}
	for name, spec := range types {
		sizes[name] = spec.Bytes()
	}
	return sizes
}

// compare accumulates the errors of every shared value on one batch.
func (s *Shared) compare(ctx context.Context, a, b engine.Session, in map[string]*ir.Array, by map[string]*sums) error {
	for _, names := range s.chunks(a, in) {
		want, got, err := runBoth(ctx, a, b, in, names)
		if err != nil {
			return err
		}
		for _, name := range names {
			measure(by, name, want[name], got[name])
		}
	}
	return nil
}

// measure skips values that are not float, or that differ in shape between the models.
func measure(by map[string]*sums, name string, want, got *ir.Array) {
	if want.Kind != ir.Dense || got.Kind != ir.Dense || !measurable(want, got) || !slices.Equal(want.Shape, got.Shape) {
		return
	}
	if by[name] == nil {
		by[name] = &sums{}
	}
	by[name].add(want, got)
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

// list is the measured layers, in the order of the nodes, and the layer with the largest increase
// of the noise-to-signal ratio over its noisiest input. A node that is equal in both models adds
// no noise, whatever its gain; a node without measured outputs propagates the noise of its inputs.
func (s *Shared) list(by map[string]*sums) ([]verification.Layer, *verification.Break) {
	noise := map[*ir.Value]float64{}
	var layers []verification.Layer
	var breaks *verification.Break
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
			noise[v] = reaches
			m := by[v.Name]
			if m == nil {
				continue
			}
			l := verification.Layer{Value: v.Name, Node: n.Label(), Op: n.Op.String(), Module: n.Module, Errors: m.errors()}
			layers = append(layers, l)
			noise[v] = relative(l.Errors.DB())
			if added := noise[v] - reaches; added > most && !s.same[n] {
				most = added
				breaks = &verification.Break{Value: l.Value, Node: l.Node, Op: l.Op, Module: l.Module, From: rounded(-10*math.Log10(reaches), 3), To: l.Errors.SQNR}
			}
		}
	}
	return layers, breaks
}

// relative is the ratio of noise to signal power: 0 where undefined, the maximum where there is noise
// without signal.
func relative(db float64) float64 {
	switch {
	case math.IsNaN(db):
		return 0
	case math.IsInf(db, -1):
		return math.MaxFloat64
	}
	return math.Pow(10, -db/10)
}
