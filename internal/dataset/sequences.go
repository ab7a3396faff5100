package dataset

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// carries reports whether an input is the output of the run before.
func (o *Options) carries(input string) bool {
	return slices.ContainsFunc(o.Carry, func(p Pair) bool { return p.Input == input })
}

// checkCarry rejects pairs of values that the model does not have. Outputs are unknown for random inputs.
func checkCarry(pairs []Pair, inputs, outputs []Input) error {
	for _, p := range pairs {
		if !slices.Contains(names(inputs), p.Input) {
			return fmt.Errorf("carry %s=%s: no input %q; the inputs are %s", p.Output, p.Input, p.Input,
				quoteList(names(inputs)))
		}
		if !slices.Contains(names(outputs), p.Output) {
			return fmt.Errorf("carry %s=%s: no output %q; the outputs are %s", p.Output, p.Input, p.Output,
				quoteList(names(outputs)))
		}
	}
	return nil
}

// Carry are the outputs that are inputs of the next run of Sequences: those of Options.Carry, and caches that the data
// lacks.
func (s *Set) Carry() []Pair {
	pairs := slices.Clone(s.opts.Carry)
	t, ok := s.feed.(*table)
	if !ok || t.derive == nil || len(t.outputs) > 0 {
		return pairs
	}
	made := caches(t.derive.missing)
	return append(pairs, slices.DeleteFunc(made, func(p Pair) bool { return s.opts.carries(p.Input) })...)
}

// Caches are the outputs of g that are inputs of the next run: keys and values, or other states.
func Caches(g *ir.Graph) []Pair { return caches(Inputs(g)) }

func caches(inputs []Input) (pairs []Pair) {
	for _, in := range inputs {
		if out := in.continuation(); out != "" && in.role() == cache {
			pairs = append(pairs, Pair{out, in.Name})
		}
	}
	return pairs
}

// decodes reports whether a sample is a sequence of tokens that is decoded with caches.
func (s *Set) decodes() bool {
	t, ok := s.feed.(*table)
	return ok && t.tokens() > 1 && slices.ContainsFunc(s.Carry(), func(p Pair) bool {
		return slices.ContainsFunc(t.derive.missing, func(in Input) bool {
			return in.Name == p.Input && in.role() == cache
		})
	})
}

// Sequences ranges over the samples like Batches, for runs whose outputs Carry are inputs of the next run. A sample of
// tokens is one sequence: its first tokens are one run, with empty caches, and the others follow, with the caches of
// the run before. Otherwise the samples are the steps of one sequence. Inputs lacks the carried inputs but those of the
// first run of a sequence; see State.
func (s *Set) Sequences(ctx context.Context, o Order) iter.Seq2[*Batch, error] {
	switch {
	case s.decodes():
		return s.decoding(ctx, o)
	case len(s.Carry()) > 0:
		return s.singleSequence(ctx, o)
	}
	return s.Batches(ctx, o)
}

// singleSequence are the samples one by one, without carried inputs after the first.
func (s *Set) singleSequence(ctx context.Context, o Order) iter.Seq2[*Batch, error] {
	o.Size = 1
	return func(yield func(*Batch, error) bool) {
		first := true
		for b, err := range s.Batches(ctx, o) {
			for _, p := range s.Carry() {
				switch a := b; {
				case err != nil:
				case !first:
					delete(a.Inputs, p.Input)
				case s.Generated():
					clear(a.Inputs[p.Input].Data) // a sequence starts with zeros
				}
			}
			first = false
			if !yield(b, err) {
				return
			}
		}
	}
}

// Generated reports whether the inputs are random.
func (s *Set) Generated() bool {
	_, ok := s.feed.(*generator)
	return ok
}

// decoding are the runs of each batch.
func (s *Set) decoding(ctx context.Context, o Order) iter.Seq2[*Batch, error] {
	t := s.feed.(*table)
	return func(yield func(*Batch, error) bool) {
		for b, err := range s.Batches(ctx, o) {
			if err != nil {
				yield(nil, err)
				return
			}
			// All runs of a batch read its tokens, so that they precede the next batch.
			from, ends := int64(0), steps(t.tokens(), s.opts.Step)
			for i, to := range ends {
				run, err := t.part(b, from, to)
				if err == nil {
					run.Step, run.Last = i, i == len(ends)-1
				}
				if !yield(run, err) || err != nil {
					return
				}
				from = to
			}
		}
	}
}

// part is the run of b on the tokens from one position to another.
func (t *table) part(b *Batch, from, to int64) (*Batch, error) {
	run := &Batch{N: b.N, First: b.First, Inputs: maps.Clone(b.Inputs), Outputs: map[string]*ir.Array{},
		Attended: b.Attended}
	for _, in := range t.inputs {
		a := b.Inputs[in.Name]
		switch last := len(a.Shape) - 1; {
		case in.Name == t.derive.tokens.Name:
			run.Inputs[in.Name] = cutAxis(a, 1, from, to)
		case in.role() == positions || in.role() == segments:
			run.Inputs[in.Name] = cutAxis(a, last, from, to)
		case in.role() == mask:
			if last > 1 {
				a = cutAxis(a, last-1, from, to)
			}
			// Keys are those of all tokens so far, queries those of this run.
			run.Inputs[in.Name] = cutAxis(a, last, 0, to)
		}
	}
	for _, p := range t.derive.missing {
		// What was made for all tokens is made again for those of the run.
		delete(run.Inputs, p.Name)
	}
	run.Targets = t.targets(b, from, to, nil)
	return run, t.derive.fill(run, int64(b.N), to-from, from, nil)
}

// cutAxis are the positions of a from one to another along an axis.
func cutAxis(a *ir.Array, axis int, from, to int64) *ir.Array {
	shape := slices.Clone(a.Shape)
	if shape[axis] < to {
		return a
	}
	shape[axis] = to - from
	out := ir.NewArray(a.DType, shape...)
	rows := elems(a.Shape[:axis])
	inner := elems(a.Shape[axis+1:]) * a.DType.Bits() / 8
	for i := range rows {
		copy(out.Data[i*(to-from)*inner:][:(to-from)*inner], a.Data[(i*a.Shape[axis]+from)*inner:])
	}
	return out
}

// targets are the tokens after those from one position to another.
func targets(ids *ir.Array, from, to int64, memory *buffers) [][]int64 {
	read := reader[int64](ids.DType)
	if read == nil || !isInteger(ids.DType) || len(ids.Shape) != 2 {
		return nil
	}
	n, count := ids.Shape[0], ids.Shape[1]
	// The last token of a sample has no successor.
	size := max(0, min(to+1, count)-from-1)
	all, rows := make([][]int64, n), ir.View[int64](memory.array(ir.Int64, n, size))
	for i := range all {
		all[i] = rows[int64(i)*size:][:size:size]
		read(all[i], ids, int64(i)*count+from+1)
	}
	return all
}

// A State holds the carried outputs of a model between runs.
type State struct {
	pairs []Pair
	held  map[string]*ir.Array // by input
}

// NewState is the state before the first run.
func NewState(pairs []Pair) *State { return &State{pairs, map[string]*ir.Array{}} }

// Inputs are those of a batch of Sequences with the carried ones.
func (s *State) Inputs(b *Batch) map[string]*ir.Array {
	if len(s.pairs) == 0 {
		return b.Inputs
	}
	in := maps.Clone(b.Inputs)
	for _, p := range s.pairs {
		if in[p.Input] == nil {
			in[p.Input] = s.held[p.Input]
		}
	}
	return in
}

// Starts reports whether a batch has all inputs: it is the first run of a sequence.
func (s *State) Starts(b *Batch) bool {
	return !slices.ContainsFunc(s.pairs, func(p Pair) bool { return b.Inputs[p.Input] == nil })
}

// Fetch are names with the carried outputs.
func (s *State) Fetch(names []string) []string {
	all := slices.Clone(names)
	for _, p := range s.pairs {
		if !slices.Contains(all, p.Output) {
			all = append(all, p.Output)
		}
	}
	return all
}

// Keep keeps the carried outputs of a run.
func (s *State) Keep(out map[string]*ir.Array) {
	for _, p := range s.pairs {
		s.held[p.Input] = out[p.Output]
	}
}
