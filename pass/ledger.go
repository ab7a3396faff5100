package pass

import (
	"context"

	"github.com/mcompress/mcompress/ir"
)

// A Ledger records the results of one step: a row for every weight, and the history of its training. The zero value is
// empty.
type Ledger struct {
	method    string
	selected  Selection
	rows      []Row
	trainings []Training
	repeated  Options            // nil for those of the step
	results   map[*ir.Tensor]int // rows of changes whose only part is the tensor
	layers    []RemovedLayers
	config    []ConfigValue
	changes   int // calls of LayersRemoved and ConfigChanged
	data      []Data
	seen      map[*ir.Value]int  // rows by their values
	params    map[*ir.Value]bool // scales and zero points, which are part of the row of their quantized weight
}

// newLedger returns the empty ledger of a step of a model with this many constants.
func newLedger(s *Step, constants int) Ledger {
	return Ledger{
		method: s.Method, selected: s.Select,
		// Of their final size: growing copies all rows of a large model several times.
		rows: make([]Row, 0, constants), results: map[*ir.Tensor]int{}, seen: make(map[*ir.Value]int, constants),
		params: map[*ir.Value]bool{},
	}
}

// Changed adds the row of a weight that is now stored in another form. The caller sets Form, After, Restore and
// optionally Notes.
func (l *Ledger) Changed(v *ir.Value, before *ir.Tensor, consumers []*ir.Node, r Row) {
	r.Status = Changed
	l.add(v, before, consumers, r)
}

// Skip adds the row of an unchanged weight. For a weight that is not selected the reason is the selection.
func (l *Ledger) Skip(v *ir.Value, consumers []*ir.Node, reason Reason) {
	// The first reason stays: that of the method is more specific than the general one of complete.
	if _, ok := l.seen[v]; ok {
		return
	}
	// Patterns are about weights: a shape or a table of indices that they do not match keeps the reason that it is none.
	if r := l.selected.Reason(v, consumers); !r.None() && IsWeight(v.Const) {
		reason = r
	}
	l.add(v, v.Const, consumers, Row{Status: Skipped, Reason: reason})
}

// Note adds a row that is not about one weight, such as a raised opset.
func (l *Ledger) Note(tensor string, reason Reason) {
	l.rows = append(l.rows, Row{Method: l.method, Tensor: tensor, Status: Noted, Reason: reason})
}

// Trained adds the history of a training.
func (l *Ledger) Trained(t Training) { l.trainings = append(l.trainings, t) }

// Repeat records the options that repeat the step: those it was given, with values for those that it chose by the data,
// the model or the time.
func (l *Ledger) Repeat(o Options) { l.repeated = o }

// LayersRemoved adds layers that were removed, all those of one change.
func (l *Ledger) LayersRemoved(stacks []RemovedLayers) {
	for _, r := range stacks {
		r.Change = l.changes
		l.layers = append(l.layers, r)
	}
	l.changes++
}

// ConfigChanged adds numbers that configuration outside of the model has too, all those of one change. Those that are
// as before tell which layers differ.
func (l *Ledger) ConfigChanged(values []ConfigValue) {
	for _, v := range values {
		v.Change = l.changes
		l.config = append(l.config, v)
	}
	l.changes++
}

func (l *Ledger) add(v *ir.Value, before *ir.Tensor, consumers []*ir.Node, r Row) {
	if l.seen == nil {
		l.seen, l.results = map[*ir.Value]int{}, map[*ir.Tensor]int{}
	}
	r.Method, r.Tensor, r.Scope, r.Before = l.method, v.Name, Scope(v.Graph()), before
	if r.Consumers == nil {
		r.Consumers = Labels(consumers)
	}
	r.Module = ModulePath(v, consumers)
	// A weight that the user excluded is not among those to cover. One that only its values exclude is: otherwise a run
	// that fails on a weight would report full coverage.
	r.Counted = (IsWeight(before) || r.ofQuantized()) && !l.params[v] &&
		(r.Status == Changed || l.unfit(v) || !l.selected.Excludes(v, consumers))
	at, again := l.results[before] // an earlier change of this step, whose result r changes again
	// Equal payloads may be one tensor under several names, each of which has a row.
	again = again && r.Status == Changed && l.rows[at].Tensor == r.Tensor && l.rows[at].Scope == r.Scope
	skipped, seen := l.seen[v] // the step changes a weight that it skipped at first
	switch {
	case again:
		l.rows[at] = l.rows[at].then(r)
	case seen && l.rows[skipped].Status == Skipped && r.Status == Changed:
		at = skipped
		l.rows[at] = r
	default:
		at = len(l.rows)
		l.rows = append(l.rows, r)
	}
	l.seen[v] = at
	// A later change of this tensor is a second change of the same weight, as quantizing one into which a normalization
	// was folded. Of several parts none is the weight.
	if r.Status == Changed && len(r.After) == 1 {
		l.results[r.After[0].Tensor] = at
	}
}

// unfit reports whether v is selected, and excluded because of its values.
func (l *Ledger) unfit(v *ir.Value) bool {
	_, is := l.selected.unfit[v.Name]
	return is
}

// complete adds a row for each constant that the method added none for.
func (l *Ledger) complete(ctx context.Context, before []constant) error {
	for _, c := range before {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, ok := l.seen[c.Value]; !ok && !l.params[c.Value] && c.Value.Const != nil {
			l.Skip(c.Value, c.consumers, l.unsupported(c.Value, c.consumers))
		}
	}
	return nil
}

// unsupported is the reason for the row of a constant that the method added none for.
func (l *Ledger) unsupported(v *ir.Value, consumers []*ir.Node) Reason {
	switch {
	case isQuantized(v):
		return Reason{Code: Already, Detail: v.Const.DType.String()}
	case !v.Const.DType.IsFloat():
		return Reason{Code: NoWeight, Detail: v.Const.DType.String()}
	case l.selected.Excludes(v, consumers):
		return l.selected.Reason(v, consumers)
	}
	return unsupportedUse(v)
}
