package dataset

import (
	"fmt"
	"slices"
	"sync"

	"github.com/mcompress/mcompress/ir"
)

// A derivation makes the inputs of a language model that the data lacks from the token ids: empty caches, positions,
// masks.
type derivation struct {
	inputs  []Input // all of the model
	missing []Input // those that are made
	tokens  Input
	given   map[string]int64 // sizes of axes by options
	data    []binding        // inputs that the data has

	mu     sync.Mutex
	shapes map[[3]int64]map[string][]int64 // of caches, by samples, tokens and past tokens
}

// derivable reports whether inputs of this role follow from token ids.
func (r role) derivable() bool { return r != data && r != tokens }

// isState reports whether the shape of an input of this role follows from the graph, and not from the tokens.
func (r role) isState() bool { return r == data || r == tokens || r == cache || r == zeros }

// sequence is the input whose second axis is the tokens: ids, or embeddings; false if there is none.
func sequence(inputs []Input) (Input, bool) {
	for _, in := range inputs {
		if dims := in.dims(nil); len(dims) >= 2 && (in.role() == tokens || in.Name == "inputs_embeds") {
			return in, true
		}
	}
	return Input{}, false
}

// emptyPositions is the number of positions of an empty cache: 0, or the size of its axis if that is fixed.
func (d *derivation) emptyPositions() int64 {
	for _, in := range d.missing {
		if axis, dims := in.growth(), in.dims(nil); in.role() == cache && axis >= 0 && axis < len(dims) &&
			dims[axis].Known() {
			return dims[axis].N
		}
	}
	return 0
}

// fill adds the missing inputs of n samples of the given number of tokens. Before them are past tokens; caches are made
// only without any.
func (d *derivation) fill(b *Batch, n, count, past int64, memory *buffers) error {
	for _, in := range d.missing {
		if in.role() == cache && past > 0 {
			continue
		}
		a, err := d.makeInput(in, n, count, past, b.Attended, memory)
		if err != nil {
			return err
		}
		b.Inputs[in.Name] = a
	}
	return nil
}

func (d *derivation) makeInput(in Input, n, count, past int64, attended *ir.Array, memory *buffers) (*ir.Array, error) {
	empty := d.emptyPositions() // positions of caches that hold nothing
	all := empty + past + count
	if shape := d.shape(in, n, count, past); attended != nil && bySample(in.role(), shape, n, count) {
		return tokenNumbers(in, shape, count, empty, past, attended, memory)
	}
	switch in.role() {
	case data, tokens, cache, zeros, segments:
		return constantArray(in, d.shape(in, n, count, past), 0, memory)
	case positions:
		return positionArray(in, d.shape(in, n, count, past), past, memory)
	case total:
		return constantArray(in, d.shape(in, n, count, past), float64(all), memory)
	case lengths:
		return constantArray(in, d.shape(in, n, count, past), float64(all-1), memory)
	case mask:
		return maskArray(in, d.shape(in, n, count, past), empty, past, memory)
	}
	return nil, fmt.Errorf("input %q: no values follow from the tokens", in.Name)
}

// shape is the shape of in.
func (d *derivation) shape(in Input, n, count, past int64) []int64 {
	dims := in.dims(nil)
	if in.role().isState() {
		return slices.Clone(d.cacheShapes(n, count, past)[in.Name])
	}
	shape := make([]int64, len(dims))
	for i := range dims {
		if shape[i] = dims[i].N; !dims[i].Known() {
			shape[i] = d.size(in.role(), i, len(dims), n, count, past)
		}
	}
	return shape
}

// size is that of a free axis of an input that is no cache.
func (d *derivation) size(r role, axis, rank int, n, count, past int64) int64 {
	switch last := axis == rank-1; {
	case r == total:
		return 1
	case r == lengths, axis == 0 && rank > 1:
		return n
	case r == mask && last:
		return d.emptyPositions() + past + count
	case last || r == mask && axis == rank-2:
		return count
	case r == mask:
		return 1
	}
	return n
}

// cacheShapes are the shapes of the caches.
func (d *derivation) cacheShapes(n, count, past int64) map[string][]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := [3]int64{n, count, past}
	if s, ok := d.shapes[key]; ok {
		return s
	}
	given := map[string]int64{}
	set := func(in Input, axis int, size int64) {
		if dims := in.dims(nil); axis >= 0 && axis < len(dims) && !dims[axis].Known() {
			// The first size of a name stands: ids come before caches, and caches before what is declared.
			if name := in.axisName(dims, axis); !hasKey(given, name) {
				given[name] = size
			}
		}
	}
	set(d.tokens, 0, n)
	set(d.tokens, 1, count)
	for _, in := range d.missing {
		switch r := in.role(); {
		case r == cache:
			// Caches that are made precede all tokens and hold none.
			set(in, in.growth(), 0)
		case !r.isState():
			for i, size := range d.shape(in, n, count, past) {
				set(in, i, size)
			}
		}
	}
	for _, b := range d.data {
		for i, size := range b.shapeOf(n) {
			set(b.Input, i, size)
		}
	}
	for name, size := range d.given {
		if !hasKey(given, name) {
			given[name] = size
		}
	}
	chosen := newAxes(d.inputs, given, n)
	shapes := map[string][]int64{}
	for _, in := range d.missing {
		if dims := in.dims(nil); dims != nil {
			shapes[in.Name] = chosen.shape(in, dims)
		}
	}
	if d.shapes == nil {
		d.shapes = map[[3]int64]map[string][]int64{}
	}
	d.shapes[key] = shapes
	return shapes
}

// bySample reports whether an input of this role and shape has numbers of its own for each of n samples of a run on
// count tokens.
func bySample(r role, shape []int64, n, count int64) bool {
	switch last := len(shape) - 1; r {
	case positions:
		return last > 0 && shape[last-1] == n && shape[last] == count
	case lengths:
		return last >= 0 && shape[last] == n
	}
	return false
}

// tokenNumbers are the positions of tokens, or the number of tokens so far less one, where padding is no token: the
// first token of a sample has position 0, whichever side the padding is on, as libraries that run decoders compute them
// (cumsum(mask) - 1).
func tokenNumbers(in Input, shape []int64, count, empty, past int64, attended *ir.Array,
	memory *buffers) (*ir.Array, error) {
	n, all := attended.Shape[0], attended.Shape[1]
	until := make([]float64, 0, n*all) // number of the last token up to each position
	for i := range n {
		tokens := -1.0
		for _, x := range ir.View[float32](attended)[i*all:][:all] {
			tokens += float64(x)
			// Padding before the first token has the position of that token.
			until = append(until, max(0, tokens))
		}
	}
	return elementsOf(in, shape, memory, func(at int64) float64 {
		if in.role() == lengths {
			return float64(empty) + until[at%n*all+past+count-1]
		}
		// Axes before that of samples, as of three kinds of positions, repeat them.
		return until[at/count%n*all+past+at%count]
	})
}

// positionArray are positions from a first one along the last axis.
func positionArray(in Input, shape []int64, from int64, memory *buffers) (*ir.Array, error) {
	return elementsOf(in, shape, memory, func(at int64) float64 { return float64(from + at%shape[len(shape)-1]) })
}

// maskArray is a mask: flags of positions, those of empty caches aside, or for each query those up to its own.
// Floats with queries are added to scores.
func maskArray(in Input, shape []int64, empty, past int64, memory *buffers) (*ir.Array, error) {
	last := shape[len(shape)-1]
	return elementsOf(in, shape, memory, func(at int64) float64 {
		key := at % last
		seen := key >= empty
		if len(shape) > 2 {
			query := at / last % shape[len(shape)-2]
			seen = seen && key <= empty+past+query
			if in.elem().IsFloat() {
				return maskTerm(seen)
			}
		}
		if seen {
			return 1
		}
		return 0
	})
}

// maskedScore is added to scores of positions that are not attended to. It is finite in float16.
const maskedScore = -65504

func maskTerm(seen bool) float64 {
	if seen {
		return 0
	}
	return maskedScore
}

// elementsOf is an array for in whose elements are those of value, by position.
func elementsOf(in Input, shape []int64, memory *buffers, value func(at int64) float64) (*ir.Array, error) {
	s := ir.Spec{DType: in.elem(), Shape: shape}
	write := writer[float64](in.elem())
	switch {
	case s.Valid() != nil || s.Bytes() > maxSample:
		return nil, fmt.Errorf("input %q: %s is too large", in.Name, s)
	case write == nil || len(shape) == 0:
		return nil, fmt.Errorf("input %q: %s does not follow from the tokens; add it to the data", in.Name, s)
	}
	a := memory.array(in.elem(), shape...)
	at := int64(0)
	blocks(a, func(part []float64) {
		for i := range part {
			part[i] = value(at)
			at++
		}
	})
	return a, nil
}

// steps are the ends of the runs in which a sequence of tokens is decoded: of size tokens each, or by default all but
// the last few tokens in one run, and these one by one.
func steps(count, size int64) []int64 {
	var ends []int64
	if size == 0 {
		single := min(singleSteps, count/2)
		for end := count - single; end < count; end++ {
			ends = append(ends, end)
		}
		return append(ends, count)
	}
	for end := size; end < count; end += size {
		ends = append(ends, end)
	}
	return append(ends, count)
}

// singleSteps is the number of tokens at the end of a sequence that are decoded one by one.
const singleSteps = 8

func hasKey(sizes map[string]int64, name string) bool {
	_, ok := sizes[name]
	return ok
}
