package dataset

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A Decoder makes the inputs of the runs of a language model on the next tokens of sequences: with the caches that the
// run before left, positions and masks.
type Decoder struct {
	derive *derivation
	state  *State
	n      int64 // sequences
	past   int64 // tokens of each so far
}

// NewDecoder is before the first tokens of n sequences. It is an error if g has no token ids or no caches, or if
// another input does not follow from these. dims are the sizes of open axes by their names.
func NewDecoder(g *ir.Graph, n int64, dims map[string]int64) (*Decoder, error) {
	inputs := Inputs(g)
	ids, ok := sequence(inputs)
	if !ok || !isInteger(ids.elem()) {
		return nil, errors.New("the model has no input of token ids")
	}
	d := &derivation{inputs: inputs, tokens: ids, given: dims}
	for _, in := range inputs {
		switch {
		case in.role().derivable():
			d.missing = append(d.missing, in)
		case in.Name != ids.Name:
			return nil, fmt.Errorf("input %q does not follow from token ids", in.Name)
		}
	}
	pairs := caches(inputs)
	if len(pairs) == 0 {
		return nil, errors.New("the model has no caches: no output continues an input, such as present.0.key " +
			"past_key_values.0.key")
	}
	return &Decoder{derive: d, state: NewState(pairs), n: n}, nil
}

// Vocabulary is the number of token ids, 0 if it is not known.
func (d *Decoder) Vocabulary() int64 { return shortest(d.derive.tokens.value, map[*ir.Value]bool{}) }

// Tokens is the number of tokens of each sequence so far.
func (d *Decoder) Tokens() int64 { return d.past }

// Inputs are those of a run on the next ids of each sequence, equally many.
func (d *Decoder) Inputs(ids [][]int64) (map[string]*ir.Array, error) {
	if int64(len(ids)) != d.n || d.n == 0 || len(ids[0]) == 0 {
		return nil, fmt.Errorf("tokens of %d sequences, want some of each of %d", len(ids), d.n)
	}
	count := len(ids[0])
	if i := slices.IndexFunc(ids, func(s []int64) bool { return len(s) != count }); i >= 0 {
		return nil, fmt.Errorf("sequence %d has %d tokens, the first one has %d", i, len(ids[i]), count)
	}
	in := d.derive.tokens
	a := ir.NewArray(in.elem(), d.n, int64(count))
	writer[int64](in.elem())(a, 0, slices.Concat(ids...))
	b := &Batch{Inputs: map[string]*ir.Array{in.Name: a}}
	if err := d.derive.fill(b, d.n, int64(count), d.past, nil); err != nil {
		return nil, err
	}
	return d.state.Inputs(b), nil
}

// Keep keeps the caches of a run on a number of tokens of each sequence, and removes them from its outputs. It returns
// the caches before, which nothing uses any more.
func (d *Decoder) Keep(outputs map[string]*ir.Array, tokens int) []*ir.Array {
	before := slices.Collect(maps.Values(d.state.held))
	d.state.Keep(outputs)
	d.past += int64(tokens)
	for _, p := range d.state.pairs {
		delete(outputs, p.Output)
	}
	return before
}

// CacheBytes is the memory of the caches.
func (d *Decoder) CacheBytes() (n int64) {
	for _, a := range d.state.held {
		n += a.Bytes()
	}
	return n
}
