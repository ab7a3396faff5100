package report

import (
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// Sparsity is the fractions of weights that are zero.
type Sparsity struct {
	Prunable Fractions `json:"prunable"` // of the matrices, filters and gates of layers
	All      Fractions `json:"all"`      // of all float weights: biases, embeddings and normalizations, too
}

// Fractions are a fraction of the source and of the result.
type Fractions struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// sparsity is nil where weights of layers were not measured.
func (r *Report) sparsity(source *ir.Model) *Sparsity {
	layers := prunable(source)
	var all, those struct{ before, after zeros }
	for i := range r.Weights {
		w := &r.Weights[i]
		layer := layers[scoped{w.Scope, w.Tensor}]
		// One weight that was not read would make the fraction that of another set before and after.
		if layer && w.was.elems == 0 && (ir.Spec{Shape: w.Shape}).Elems() > 0 {
			return nil
		}
		if !w.Float {
			continue
		}
		all.before.add(w.was)
		all.after.add(w.is)
		if layer {
			those.before.add(w.was)
			those.after.add(w.is)
		}
	}
	if those.before.elems == 0 {
		return nil
	}
	return &Sparsity{
		Prunable: Fractions{those.before.fraction(), those.after.fraction()},
		All:      Fractions{all.before.fraction(), all.after.fraction()},
	}
}

func (z zeros) fraction() float64 {
	if z.elems == 0 {
		return 0
	}
	return round(float64(z.zeros)/float64(z.elems), 6)
}

// prunable are the weights of layers, which pruning methods support.
func prunable(m *ir.Model) map[scoped]bool {
	found := map[scoped]bool{}
	for _, w := range pass.UsedWeights(m, func(u pass.Consumer) bool { return u.Input.Role != operator.Table }) {
		found[scoped{pass.Scope(w.Value.Graph()), w.Value.Name}] = true
	}
	return found
}

// prunes reports whether zeros are a result: weights of layers have more of them than before, or many.
func (s *Sparsity) prunes() bool {
	return s != nil && (s.Prunable.After >= manyZeros || s.Prunable.After > s.Prunable.Before+manyZeros)
}

// manyZeros is a fraction of zeros that trained weights do not have unless they were pruned.
const manyZeros = 0.05

// Text is the sparsity of the result, "" where it is that of dense weights.
func (s *Sparsity) Text() string {
	if !s.prunes() {
		return ""
	}
	return change(s.Prunable) + " of the weights of layers are zero, " + change(s.All) + " of all weights"
}

func change(f Fractions) string {
	before, after := percent(f.Before), percent(f.After)
	if before == after {
		return after
	}
	return before + " → " + after
}
