package pass

import (
	"context"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/operator"
	"github.com/mcompress/mcompress/ir/opset"
)

// A Result is what the steps of a run report.
type Result struct {
	Steps     []Options  // that repeat the run, with the values of options that were chosen
	Rows      []Row      // the ledger
	Trainings []Training // histories of training steps, in order
	Layers    []RemovedLayers
	Config    []ConfigValue
	Data      []Data // in the order of steps
}

// Run runs steps over m in order, and verifies the model before, between and after them. Steps read tensors by eval,
// which the caller closes after writing m. A bug in a method becomes an error that names it.
func Run(ctx context.Context, m *ir.Model, eval *ir.Eval, env Environment, steps []Options) (*Result, error) {
	steps, err := resolveAll(steps)
	if err != nil {
		return nil, err
	}
	if err := m.Verify(); err != nil {
		return nil, err
	}
	// Rules of ONNX that the source breaks are its own, and such files are compressed, too: steps must not break others.
	broken := opset.BrokenBy(m)
	irVersion, res, consts := m.IRVersion, &Result{}, constCache{}
	var ledgers [][]Row
	// A default of a graph input is replaced at run time by whoever feeds the input, such as a slot for an adapter: a
	// method that took it for a constant would compress a value that is not used.
	hidden, restore := m.HideDefaults()
	defer restore()
	changes := 0
	for i, o := range steps {
		s := &Step{Model: m, Eval: eval, Env: env, Method: o.Method().Name, Select: o.Selected(), Later: steps[i+1:],
			index: i, consts: consts, overridable: hidden}
		if err := s.run(ctx, o); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Method, err)
		}
		// finetune without labels has the source as its teacher, which is an error as long as the model is the source
		// itself.
		env.Changed = env.Changed || slices.ContainsFunc(s.Ledger.rows, func(r Row) bool { return r.Status == Changed })
		// In the metadata, so that a training keeps these zeros, also in another run: other zeros are values like any
		// other.
		if err := recordPruned(m, s.Ledger.rows); err != nil {
			return nil, err
		}
		env.NoTrials = env.NoTrials || o.Method().Stage == Train
		// The source was valid, so that whatever is wrong now is a mistake of the method and not of the user's file.
		if err := m.Verify(); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Method, ir.Bugf("the result is not a valid model: %w", err))
		}
		if err := broken.Check(m); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Method, err)
		}
		// A recipe has the values that a step chose, such as the number of steps of a training that was given minutes.
		if s.Ledger.repeated != nil {
			o = s.Ledger.repeated
		}
		res.Steps = append(res.Steps, o)
		ledgers = append(ledgers, s.Ledger.rows)
		res.Trainings = append(res.Trainings, s.Ledger.trainings...)
		// Numbers of changes are those of the run: configuration follows all steps in one sequence.
		for _, l := range s.Ledger.layers {
			l.Change += changes
			res.Layers = append(res.Layers, l)
		}
		for _, v := range s.Ledger.config {
			v.Change += changes
			res.Config = append(res.Config, v)
		}
		changes += s.Ledger.changes
		res.Data = append(res.Data, s.Ledger.data...)
	}
	restore() // before IR versions are compared: an initializer that is also an input is what they differ in
	res.Rows = slices.Concat(ledgers...)
	res.finish(m, irVersion, env)
	if err := env.Target.checkVersions(m); err != nil {
		return nil, err
	}
	// After all steps, as it depends on the opset of the result and on the rows that raised it.
	res.noteSlower(m, env.Target, steps)
	for g := range m.Graphs() {
		if err := order(g); err != nil {
			return nil, fmt.Errorf("graph %q: %w", g.Name, err)
		}
	}
	// After the last node is in place: onnx.checker infers types from one node to the next, and ends where a function or
	// subgraph has operators that it does not know, unless the types of their outputs are declared.
	if res.Changed() {
		opset.Declare(m)
	}
	for g := range m.Graphs() {
		// Last, as Declare inserts Cast nodes.
		nameNodes(g)
	}
	return res, nil
}

// finish makes the IR version of the rewritten model valid for its nodes and for the target, which was the given one,
// and notes that it was raised or lowered.
func (r *Result) finish(m *ir.Model, was int64, env Environment) {
	if env.KeepIR {
		// Below IR 4 there are no initializers besides graph inputs, so that new ones are inputs, too.
		listConsts(m)
		return
	}
	// An unchanged model is written as it came.
	if !r.Changed() {
		return
	}
	if raiseIR(m, was) {
		r.noteIR(IRRaised, was, m.IRVersion)
	}
	// Raised first: how far it can be lowered depends on what the rewritten model needs.
	if have := m.IRVersion; env.Target.lowerIR(m) {
		r.noteIR(IRLowered, have, m.IRVersion)
	}
}

func (r *Result) noteIR(code Code, from, to int64) {
	last := r.Rows[len(r.Rows)-1].Method
	r.Rows = append(r.Rows, Row{Method: last, Status: Noted,
		Reason: Reason{Code: code, Detail: fmt.Sprintf("%d to %d", from, to)}})
}

// Changed reports whether the form of any weight changed.
func (r *Result) Changed() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Status == Changed })
}

// resolveAll checks options before the first step runs.
func resolveAll(steps []Options) ([]Options, error) {
	all := make([]Options, len(steps))
	for i, s := range steps {
		var err error
		if all[i], err = resolved(s); err != nil {
			return nil, fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return all, nil
}

func (s *Step) run(ctx context.Context, o Options) (err error) {
	s.Select.searched, s.Select.unfit = s.Env.Searched, s.Env.Unfit
	before := constantsOf(s.Model)
	s.Ledger = newLedger(s, len(before))
	// Scales and zero points of weights that an earlier step quantized are no weights of this one: they have no row.
	for _, c := range before {
		if IsQuantizationParam(c.Value) {
			s.Ledger.params[c.Value] = true
		}
	}
	defer ir.Guard(&err) // a panic of a method is an error with its name: a search goes on with other candidates
	// Before the method reads a weight: a pattern with a typing error had no effect otherwise, and all weights were
	// compressed.
	if err := s.checkPatterns(o); err != nil {
		return err
	}
	if err := o.Run(ctx, s); err != nil {
		return err
	}
	// Hidden from the method, which adds no rows of them.
	for _, v := range s.overridable {
		s.Ledger.add(v, v.Default, Consumers(v), Row{Status: Skipped, Reason: Reason{Code: Overridable}})
	}
	// Of the constants from before the step: new ones, such as scales, are parts of the rows that have them.
	return s.Ledger.complete(ctx, before)
}

// A constant is a constant before a step, with its consumers.
type constant struct {
	*ir.Value
	consumers []*ir.Node
}

// constantsOf are a model's constants of rank 1 or more, in file order.
func constantsOf(m *ir.Model) []constant {
	var cs []constant
	for g := range m.Graphs() {
		for _, v := range g.Consts() {
			if len(v.Const.Shape) > 0 {
				cs = append(cs, constant{v, Consumers(v)})
			}
		}
	}
	return cs
}

// unsupportedUse is why v, no consumer of which a method supports, is skipped.
func unsupportedUse(v *ir.Value) Reason {
	if len(v.Uses()) == 0 {
		return Reason{Code: Unused}
	}
	for _, l := range LeafUses(v) {
		if l.Node != nil {
			return UnsupportedInput(l.Node, l.Index)
		}
	}
	return Reason{Code: GraphOutput}
}

// UnsupportedInput is why input i of n is skipped where a method does not support it.
func UnsupportedInput(n *ir.Node, i int) Reason {
	if operator.Of(n).Input(i).Role == operator.Bias {
		return Reason{Code: Bias}.At(n)
	}
	return Reason{Code: Unsupported, Detail: fmt.Sprintf("input %d", i)}.At(n)
}

// order sorts g if a node is before a producer of its inputs, which checkers reject and some runtimes accept.
func order(g *ir.Graph) error {
	seen := map[*ir.Node]bool{}
	for n := range g.Nodes() {
		for _, v := range n.Inputs() {
			if v != nil && v.Producer() != nil && v.Graph() == g && !seen[v.Producer()] {
				return g.Sort()
			}
		}
		seen[n] = true
	}
	return nil
}
