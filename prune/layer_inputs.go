package prune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/internal/calibrate"
	"github.com/mcompress/mcompress/internal/calibrate/hessian"
	"github.com/mcompress/mcompress/internal/calibrate/layerwise"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/pass"
)

// A layer is a weight as matrices of k inputs by n outputs, one for each group of a convolution, and the node whose
// inputs are observed.
type layer struct {
	*weight
	node              *ir.Node
	groups, k, n      int
	channels          int // inputs of one tap of a filter; all of a matrix
	out, channel, tap int // distances of neighbours in the payload
	amount            float64
}

// index is the position in the payload of input i and output j of a group. Inputs are ordered by taps, then by
// channels.
func (l *layer) index(group, i, j int) int {
	return (group*l.n+j)*l.out + i%l.channels*l.channel + i/l.channels*l.tap
}

// layerOf is the layer of w whose inputs are observed, or the reason why there is none. Of several products it is the
// first to run.
func layerOf(walk *layerwise.Walk, w *weight) (*layer, pass.Reason) {
	type axes struct {
		out, channel, tap span
		batches           int64
	}
	a, reason := common(w, func(l layout) axes {
		return axes{l.axisOf(out), l.axisOf(reduce), l.axisOf(spatial), l.batches()}
	})
	if !reason.None() {
		return nil, reason
	}
	l := &layer{weight: w, groups: 1, channels: int(a.channel.n), out: int(a.out.inner), channel: int(a.channel.inner),
		tap: int(a.tap.inner)}
	for _, u := range w.uses {
		n := u.Node
		product := operator.Of(n).Product() && n.Int("transA", 0) == 0 && a.batches == 1
		if !product && !isConv(n, u) || u.Index != 1 || !walk.Has(n.Input(0)) {
			return nil, pass.Reason{Code: pass.Unsupported}.At(n)
		}
		if l.node == nil || walk.Compare(n.Input(0), l.node.Input(0)) < 0 {
			l.node = n
		}
	}
	if l.filter() {
		l.groups = int(l.node.Int("group", 1))
	}
	if l.groups < 1 || a.out.n%int64(l.groups) != 0 {
		return nil, pass.Reason{Code: pass.Unsupported}.At(l.node)
	}
	l.k, l.n = int(a.channel.n*a.tap.n), int(a.out.n)/l.groups
	return l, pass.Reason{}
}

// isConv reports whether n is a convolution with the filters u.
func isConv(n *ir.Node, u pass.Consumer) bool { return n.Op.Is("Conv") && !u.Operand.Transposed }

// filter reports whether l is a convolution.
func (l *layer) filter() bool { return !operator.Of(l.node).Product() }

// inputStatistics are statistics of the inputs of a layer, in memory that does not grow with the number of rows.
type inputStatistics interface {
	// Add adds rows of inputs.
	Add(rows []float32)
	// Finite reports whether there were only finite inputs.
	Finite() bool
}

// A samplePass pass prunes weights layer by layer by the observed inputs of each.
type samplePass struct {
	step     *pass.Step
	sparsity *sparsity
	// the inputs of a layer are observed in the model whose earlier layers are pruned; otherwise in the source
	sequential bool
	pool       *op.Pool
	data       calibrate.Data
	moments    func(k int) inputStatistics
	fits       bool // prune fits the elements that stay to the samples

	// prune zeroes elements of x, the elements of l, by the moments of the inputs of each group.
	prune func(l *layer, x []float32, m []inputStatistics) error
	note  func(l *layer) pass.Reason
	// compare is the comparison of prune, and paper that of the method's paper. candidates are those for auto, first
	// the one that stays where samples do not show that another is better; repeat records the choice.
	compare    *string
	paper      string
	candidates func(layers []*layer) []string
	repeat     func()

	trial   bool // weights are replaced without rows in the ledger
	samples int
}

// pruneLayers prunes ws, in order of execution, and skips those without observed inputs.
func (s *samplePass) pruneLayers(ctx context.Context, ws []*weight) error {
	s.pool = op.NewPool(s.step.Env.Workers)
	defer s.pool.Close()
	layers, err := s.layersOf(ws)
	if err != nil || len(layers) == 0 {
		return err
	}
	if s.step.Env.DryRun { // sizes do not depend on values
		for _, l := range layers {
			l.set(s.step, s.note(l), l.before)
		}
		return nil
	}
	// Amounts before the comparison: which one is best depends on them.
	if err := s.allocate(ctx, layers); err != nil {
		return err
	}
	if chosen, err := s.decide(ctx, layers); err != nil {
		return err
	} else if chosen {
		s.repeat()
	}
	return s.walk(ctx, layers, nil)
}

// layersOf are the layers of ws in order of execution; the other weights are skipped.
func (s *samplePass) layersOf(ws []*weight) (layers []*layer, err error) {
	walk, err := s.startWalk()
	if err != nil {
		return nil, err
	}
	for _, w := range ws {
		l, reason := layerOf(walk, w)
		if !reason.None() {
			w.skip(s.step, reason)
			continue
		}
		l.amount = s.sparsity.fraction().amountOf(w.v, w.consumers)
		layers = append(layers, l)
	}
	slices.SortStableFunc(layers, func(a, b *layer) int {
		return cmp.Or(walk.Compare(a.node.Input(0), b.node.Input(0)), cmp.Compare(a.inputs(), b.inputs()))
	})
	return layers, nil
}

func (s *samplePass) startWalk() (*layerwise.Walk, error) {
	return layerwise.New(s.step.Model, s.step.Eval, engine.Options{Workers: s.step.Env.Workers, Limits: s.step.Env.Limits})
}

// walk prunes layers, which are in order of execution. With visit it is a trial, and calls visit with the outputs of
// the samples that it measures.
func (s *samplePass) walk(ctx context.Context, layers []*layer, visit func(outputs map[string]*ir.Array) error) error {
	s.trial = visit != nil
	walk, err := s.startWalk()
	if err != nil {
		return err
	}
	s.samples = 0
	err = s.data.Samples(ctx, s.step, s.step.Model, func(inputs map[string]*ir.Array) error {
		s.samples++
		return walk.Add(inputs)
	})
	if err != nil {
		return err
	}
	groups, of := s.groups(layers)
	prune := func(i int) error {
		if err := s.layers(ctx, walk, of[i]); err != nil {
			return fmt.Errorf("%s: %w", of[i][0].node.Label(), err)
		}
		return nil
	}
	if visit == nil {
		return walk.Each(ctx, groups, prune)
	}
	for i := range of {
		if err := prune(i); err != nil {
			return err
		}
	}
	sample := -1
	return walk.Finish(ctx, func(outputs map[string]*ir.Array) error {
		if sample++; !s.isTrialSample(sample) {
			return nil
		}
		return visit(outputs)
	})
}

// groups are the layers with the same inputs.
func (s *samplePass) groups(layers []*layer) (g layerwise.Groups, of [][]*layer) {
	g = layerwise.Groups{Step: s.step, Name: "weights", Sequential: s.sequential}
	for len(layers) > 0 {
		first, n, outputs := layers[0], 0, 0
		for n < len(layers) && layers[n].node.Input(0) == first.node.Input(0) && layers[n].inputs() == first.inputs() {
			outputs += layers[n].n
			n++
		}
		g.Inputs = append(g.Inputs, first.node.Input(0))
		// The factor of a Hessian takes k³ operations, error feedback k² for each output.
		g.Costs = append(g.Costs, int64(first.groups)*int64(first.k)*int64(first.k)*int64(first.k+outputs))
		of, layers = append(of, layers[:n]), layers[n:]
	}
	return g, of
}

// inputs identifies what l reads of its input, apart from the value: layers with equal ones share the moments.
func (l *layer) inputs() string {
	text := fmt.Sprint(l.k, l.groups)
	if l.filter() {
		text += fmt.Sprint(l.filterShape(), attributes(l.node))
	}
	return text
}

// layers prunes layers with the same inputs.
func (s *samplePass) layers(ctx context.Context, walk *layerwise.Walk, ls []*layer) error {
	l := ls[0]
	ms := make([]inputStatistics, l.groups)
	for i := range ms {
		ms[i] = s.moments(l.k)
	}
	unknown := s.trial || slices.ContainsFunc(ls, func(l *layer) bool { return !layerwise.HasResult(s.step, l.v.Name) })
	sound, sample := true, -1
	// A result that an interrupted run left needs no inputs; but where later layers read what pruned ones compute,
	// the walk must pass here all the same.
	if unknown || s.sequential {
		err := walk.To(ctx, l.node.Input(0), func(a *ir.Array) error {
			if sample++; unknown && !s.isHeldOut(sample) {
				sound = sound && l.observe(a, ms)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	useless := pass.Reason{}
	switch {
	case !sound:
		useless.Code = pass.Unsupported
	case slices.ContainsFunc(ms, func(m inputStatistics) bool { return !m.Finite() }):
		useless = pass.Reason{Code: pass.Inputs, Detail: l.node.Input(0).Name + " has NaN or infinities"}
	}
	for _, l := range ls {
		if !useless.None() {
			s.skip(l, useless.At(l.node))
			continue
		}
		if err := s.layer(ctx, l, ms); err != nil {
			return err
		}
		if !s.sequential && !s.trial {
			walk.Replace(l.v, l.before) // for the nodes that have not run
		}
	}
	return nil
}

// observe adds an input of one run to the moments of each group, and reports whether it has the right type and shape.
func (l *layer) observe(a *ir.Array, ms []inputStatistics) bool {
	if l.filter() {
		return l.observePatches(a, ms)
	}
	rows, ok := hessian.Rows(a, l.k)
	if ok {
		ms[0].Add(rows)
	}
	return ok
}

// layer prunes one weight.
func (s *samplePass) layer(ctx context.Context, l *layer, ms []inputStatistics) error {
	if !s.trial && layerwise.HasResult(s.step, l.v.Name) {
		return s.replace(ctx, l, nil)
	}
	b, err := s.step.Eval.ReadAll(ctx, l.before)
	if err != nil {
		return err
	}
	x, ok := decodeFloats(b, l.before.DType)
	if !ok || largest(b, l.before.DType) >= infinity(l.before.DType) {
		reason := notFinite
		if !ok {
			reason = pass.Reason{Code: pass.DType, Detail: l.before.DType.String()}
		}
		s.skip(l, reason)
		return nil
	}
	if err := s.prune(l, x, ms); errors.Is(err, hessian.ErrSingular) {
		s.skip(l, pass.Reason{Code: pass.Inputs, Detail: err.Error()}.At(l.node))
		return nil
	} else if err != nil {
		return err
	}
	after := encodeFloats(x, l.before.DType)
	// Compensation may make elements larger than the type holds.
	if largest(after, l.before.DType) >= infinity(l.before.DType) {
		s.skip(l, notFinite)
		return nil
	}
	return s.replace(ctx, l, after)
}

// replace replaces the payload of l, by that of an interrupted run if its result is known.
func (s *samplePass) replace(ctx context.Context, l *layer, after []byte) (err error) {
	var kept []*ir.Tensor
	if s.trial {
		kept, err = layerwise.Keep(ctx, s.step.Eval, l.v.Name, after)
	} else {
		kept, err = layerwise.Once(ctx, s.step, l.v.Name, func() ([][]byte, error) { return [][]byte{after}, nil })
	}
	if err != nil {
		return err
	}
	if t := (&ir.Tensor{Spec: l.before.Spec, Source: kept[0].Source}); s.trial {
		l.v.SetConst(t)
	} else {
		l.set(s.step, s.note(l), t)
	}
	return nil
}

// skip adds the row of a layer that is not changed after all.
func (s *samplePass) skip(l *layer, reason pass.Reason) {
	if !s.trial {
		l.skip(s.step, reason)
	}
}
