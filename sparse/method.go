package sparse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/ir/opset"
	"github.com/mcompress/mcompress/pass"
)

// method describes a method of this package.
func method(name, doc string, options func() pass.Options) *pass.Method {
	return &pass.Method{Name: name, Command: "sparse", Doc: doc, Stage: pass.Sparsify, Shrinks: true, New: options}
}

// A sparsifier stores weights in the smallest of its forms.
type sparsifier struct {
	forms []sizer
	block Block // zero where no form has blocks
}

func (s *sparsifier) sparsify(ctx context.Context, step *pass.Step) error {
	vs := candidates(ctx, step)
	first, err := pass.Duplicates(ctx, step.Eval, step.Env.Workers, vs)
	if err != nil {
		return err
	}
	ms, err := measureAll(ctx, step, vs, first, s.block)
	if err != nil {
		return err
	}
	d := &decider{step: step, forms: s.forms, refused: map[int64]string{}}
	choices := map[*ir.Value]choice{}
	for _, v := range vs {
		if m, ok := ms[v]; ok {
			if choices[v], err = d.decide(ctx, v, m); err != nil {
				return err
			}
		}
	}
	// Before anything is rewritten: raising the opset rewrites nodes, and forms of the new opset may be smaller.
	if to := requiredOpset(choices); to > 0 {
		if err := raise(ctx, step, to); err != nil {
			return err
		}
		return s.sparsify(ctx, step) // constants may have been replaced
	}
	// After all choices, which measure constants that rewriting removes.
	newRewriter(step).rewriteAll(vs, first, choices)
	return nil
}

// requiredOpset is the opset that the model must be raised to for the choices, 0 if none.
func requiredOpset(choices map[*ir.Value]choice) int64 {
	to := int64(0)
	for v, ch := range choices {
		if ch.layout != nil && ch.opset() > v.Graph().Opset("") {
			to = max(to, ch.opset())
		}
	}
	return to
}

func raise(ctx context.Context, s *pass.Step, to int64) error {
	from := s.Model.Opset("")
	if err := opset.Raise(ctx, s.Eval, s.Model, to); err != nil {
		return err
	}
	s.Ledger.Note("", pass.Reason{Code: pass.OpsetRaised, Detail: fmt.Sprintf("%d to %d", from, to)})
	return nil
}

// A choice is the form of a tensor, nil for dense, and the sizes that it is chosen by.
type choice struct {
	layout
	sizes string // of all forms, as text
}

// A decider compares the forms of one tensor after the other.
type decider struct {
	step    *pass.Step
	forms   []sizer
	refused map[int64]string // by opset: the node because of which the model cannot be raised to it
}

func (d *decider) decide(ctx context.Context, v *ir.Value, m statistics) (choice, error) {
	version := v.Graph().Opset("")
	ch := choice{}
	sizes := []size{{"dense", denseCost(m.Spec, v.Name)}}
	smallest := sizes[0].bytes
	var notes []string
	for _, form := range d.forms {
		l, no := form(m, version)
		if no == "" {
			no = d.unsupported(l, v)
		}
		if no == "" {
			var err error
			if no, err = d.unreachable(ctx, l, version); err != nil {
				return ch, err
			}
		}
		if no != "" {
			notes = append(notes, no)
			continue
		}
		s := size{l.label(), cost(l, v)}
		sizes = append(sizes, s)
		// Strictly: of equal sizes the form that is listed first, and dense before all.
		if s.bytes < smallest {
			ch.layout, smallest = l, s.bytes
		}
	}
	ch.sizes = strings.Join(append([]string{m.sparsity() + ": " + arithmetic(sizes)}, notes...), "; ")
	return ch, nil
}

// unsupported names the runtime of the target that does not run l in place of v; empty if all do.
func (d *decider) unsupported(l layout, v *ir.Value) string {
	need := pass.Capability(0)
	switch {
	case slices.ContainsFunc(l.parts(), func(p part) bool { return p.Elems() == 0 }):
		need = pass.EmptyTensors
	case l.sums() && slices.ContainsFunc(pass.Consumers(v), pass.IsRecurrent):
		need = pass.SummedRecurrent
	}
	if t := d.step.Env.Target; !t.Can(need) {
		return fmt.Sprintf("no %s (%s)", l.label(), t.Without(need))
	}
	return ""
}

// unreachable names the opset that l's operators need, and the node because of which the model is not raised to it;
// empty if it is raised.
func (d *decider) unreachable(ctx context.Context, l layout, version int64) (string, error) {
	to := l.opset()
	if to <= version {
		return "", nil
	}
	reason, known := d.refused[to]
	if !known {
		// Once for each opset and not for each weight: it goes through the whole model.
		err := opset.CanRaise(ctx, d.step.Eval, d.step.Model, to)
		var no *opset.Unsupported
		if err != nil && !errors.As(err, &no) {
			return "", err
		}
		if no != nil {
			reason = no.Op + " " + no.Node
		}
		d.refused[to] = reason
	}
	if reason == "" {
		return "", nil
	}
	return fmt.Sprintf("no %s (opset %d, %s)", l.label(), to, reason), nil
}
