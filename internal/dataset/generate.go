package dataset

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// Random are the options of Generate.
type Random struct {
	Seed    uint64
	Samples int                     // runs of the model; 0 for one
	Batch   int64                   // size of open first axes; 0 for 1
	Dims    map[string]int64        // sizes of open axes by their names
	Ranges  map[string][2]int64     // minimum and maximum of integer inputs by their names
	Fill    map[string]float64      // constant inputs: the value of all elements
	Floats  func(x float64) float64 // floating-point inputs are this function of standard normal numbers; nil for these
	Carry   []Pair                  // outputs that are inputs of the next run, which start with zeros
	Workers int                     // 0 for one per processor
	Memory  int64                   // bytes of prefetched inputs; 0 for 64 MiB
}

// Generate makes random inputs for r.Samples runs of a model. They depend on r.Seed only: an input is the same on every
// machine and independent of the other inputs. A run counts as one sample.
//
// Of language models, position ids, masks and lengths follow from the numbers of tokens and of positions in caches.
// Other floating-point inputs are standard normal; bools are even; integers are uniform in r.Ranges, else in the range
// of 8-bit types, 1 if the name contains "mask", or 0 and 1, because larger types are mostly indices; strings are short
// words. Open axes that are not in r.Dims have the size r.Batch (first axis), 64 (spatial axes of images) or 16, or
// another size where the graph requires it.
func Generate(inputs []Input, r Random) (*Set, error) {
	o := Options{Fill: r.Fill, Dims: r.Dims, Carry: r.Carry, Workers: r.Workers, Memory: r.Memory}
	if err := o.validate(inputs); err != nil {
		return nil, err
	}
	if graph := graphOf(inputs); graph != nil {
		if err := checkCarry(r.Carry, inputs, Outputs(graph)); err != nil {
			return nil, err
		}
	}
	g := &generator{inputs: inputs, options: r}
	g.options.Samples = max(r.Samples, 1)
	chosen := newAxes(inputs, r.Dims, r.Batch)
	specs, err := chosen.specs()
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		if err := g.checkInput(in, specs[i]); err != nil {
			return nil, err
		}
		g.held += specs[i].Bytes()
	}
	g.specs = specs
	g.language(chosen)
	set := newSet(g, o)
	set.chosen = chosen
	return set, nil
}

// Specs are the types and shapes of the inputs of Generate, in their order. Unlike Generate it accepts inputs of any
// size.
func Specs(inputs []Input, r Random) ([]ir.Spec, error) {
	if err := CheckDims(inputs, r.Dims); err != nil {
		return nil, err
	}
	return newAxes(inputs, r.Dims, r.Batch).specs()
}

// A generator is a feed of random inputs.
type generator struct {
	inputs  []Input
	specs   []ir.Spec
	options Random
	held    int64 // bytes of a run

	tokens, past int64 // of a language model; 0 tokens for other models
}

func (g *generator) len() int            { return g.options.Samples }
func (g *generator) size(int) int        { return 1 }
func (g *generator) bytes(n int) int64   { return int64(n) * g.held }
func (g *generator) transient(int) int64 { return 0 }
func (g *generator) random() error       { return nil }
func (g *generator) bytesRead() int64    { return 0 }
func (g *generator) resident() int64     { return 0 }
func (g *generator) labelled() bool      { return false }
func (g *generator) recorded() []string  { return nil }
func (g *generator) close() error        { return nil }

// checkInput rejects inputs that are not supported, before memory is allocated.
func (g *generator) checkInput(in Input, spec ir.Spec) error {
	if err := spec.Valid(); err != nil || spec.Elems() > maxSample/16 || spec.Bytes() > maxSample {
		return fmt.Errorf("input %q: %s is too large; set smaller sizes with --dim", in.Name, spec)
	}
	if v, ok := g.options.Fill[in.Name]; ok {
		// One element shows whether the value fits the type.
		_, err := constantArray(in, nil, v, nil)
		return err
	}
	if isInteger(spec.DType) {
		lo, hi := g.span(in)
		ends := ir.NewArray(spec.DType, 2)
		if lo > hi || writer[int64](spec.DType)(ends, 0, []int64{lo, hi}) >= 0 {
			return fmt.Errorf("input %q: invalid range of %s: %d to %d", in.Name, spec.DType, lo, hi)
		}
	}
	// Likewise one element shows whether the type has random values.
	_, err := g.makeRandom(in, ir.Spec{DType: spec.DType, Shape: []int64{1}}, 0, nil)
	return err
}

func (g *generator) load(index []int, memory *buffers) (func() (*Batch, error), error) {
	run := index[0]
	return func() (*Batch, error) {
		b := &Batch{Inputs: map[string]*ir.Array{}, Outputs: map[string]*ir.Array{}}
		for i, in := range g.inputs {
			var err error
			v, given := g.options.Fill[in.Name]
			switch spec := g.specs[i]; {
			case given:
				b.Inputs[in.Name], err = constantArray(in, spec.Shape, v, memory)
			case g.followsTokens(in, spec):
				b.Inputs[in.Name], err = g.makeDerived(in, spec, memory)
			default:
				b.Inputs[in.Name], err = g.makeRandom(in, spec, run, memory)
			}
			if err != nil {
				return nil, err
			}
		}
		return b, nil
	}, nil
}

// makeRandom makes input in of one run. It depends on seed, name and run.
func (g *generator) makeRandom(in Input, spec ir.Spec, run int, memory *buffers) (*ir.Array, error) {
	name := fnv.New64a()
	name.Write([]byte(in.Name))
	// A stream of its own for each input and run: values do not depend on which others are made, or when.
	rng := rand.New(rand.NewPCG(g.options.Seed, name.Sum64()+uint64(run)*oddStep))
	a := memory.array(spec.DType, spec.Shape...)
	switch dt := spec.DType; {
	case dt == ir.String:
		words(a.Text, rng)
	case dt.IsFloat():
		g.floats(a, rng)
	case dt == ir.Complex64:
		normal(ir.ArrayOf(ir.View[float32](&ir.Array{DType: ir.Float, Data: a.Data}), 2*a.Elems()), rng)
	case dt == ir.Complex128:
		normal(ir.ArrayOf(ir.View[float64](&ir.Array{DType: ir.Double, Data: a.Data}), 2*a.Elems()), rng)
	case isInteger(dt):
		g.integers(in, a, rng)
	default:
		p, ok := patterns()[dt]
		if !ok {
			return nil, fmt.Errorf("input %q: random %s is not supported; use --data", in.Name, dt)
		}
		p.fill(a, rng)
	}
	return a, nil
}

// oddStep is the distance of the random streams of runs: 2^64 divided by the golden ratio.
const oddStep = 0x9e3779b97f4a7c15

// floats fills a with g.options.Floats of standard normal numbers.
func (g *generator) floats(a *ir.Array, rng *rand.Rand) {
	if g.options.Floats == nil {
		normal(a, rng)
		return
	}
	blocks(a, func(part []float64) {
		for i := range part {
			part[i] = g.options.Floats(rng.NormFloat64())
		}
	})
}

// normal fills a with standard normal numbers; their magnitude is below 10.
func normal(a *ir.Array, rng *rand.Rand) {
	blocks(a, func(part []float64) {
		for i := range part {
			part[i] = rng.NormFloat64()
		}
	})
}

// blocks fills a block by block with values of next, all of which are in range.
func blocks[W int64 | float64](a *ir.Array, next func([]W)) {
	n, write := a.Elems(), writer[W](a.DType)
	part := make([]W, min(block, n))
	for at := int64(0); at < n; at += block {
		part = part[:min(block, n-at)]
		next(part)
		write(a, at, part)
	}
}

// integers fills a with integers in the range of in.
func (g *generator) integers(in Input, a *ir.Array, rng *rand.Rand) {
	lo, hi := g.span(in)
	blocks(a, func(part []int64) {
		for i := range part {
			part[i] = lo + int64(below(rng, uint64(hi)-uint64(lo)))
		}
	})
}

// below is a uniform random number from 0 to most.
func below(rng *rand.Rand, most uint64) uint64 {
	// One more would be 0, of which Uint64N panics.
	if most == math.MaxUint64 {
		return rng.Uint64()
	}
	return rng.Uint64N(most + 1)
}

func (g *generator) span(in Input) (lo, hi int64) {
	if span, ok := g.options.Ranges[in.Name]; ok {
		return span[0], span[1]
	}
	switch {
	case in.elem() == ir.Uint8:
		return 0, math.MaxUint8
	case in.elem() == ir.Int8:
		return math.MinInt8, math.MaxInt8
	case in.elem() != ir.Bool && strings.Contains(strings.ToLower(in.Name), "mask"):
		return 1, 1
	}
	return 0, 1
}

// words fills text with random words of one to three syllables.
func words(text []string, rng *rand.Rand) {
	syllables := []string{"ba", "den", "ko", "lu", "mi", "nor", "pe", "ra", "sil", "tu", "ve", "zan"}
	for i := range text {
		for range 1 + rng.IntN(3) {
			text[i] += syllables[rng.IntN(len(syllables))]
		}
	}
}

// A pattern makes random bytes of a type that Go does not have: random bits and mask, plus least, which excludes NaN,
// infinity and large numbers.
type pattern struct{ mask, least byte }

func patterns() map[ir.DType]pattern {
	all := pattern{mask: 0xff}
	return map[ir.DType]pattern{
		// Every bit pattern is a number.
		ir.Uint4: all, ir.Int4: all, ir.Uint2: all, ir.Int2: all, ir.Float4E2M1: all, ir.Float6E2M3: all, ir.Float6E3M2: all,
		// Both signs, below 2; types without a negative zero have NaN at its bit pattern.
		ir.Float8E4M3FN:   {mask: 0xbf},
		ir.Float8E5M2:     {mask: 0xbf},
		ir.Float8E4M3FNUZ: {mask: 0x3f, least: 1},
		ir.Float8E5M2FNUZ: {mask: 0x3f, least: 1},
		// 2^-7 to 1.
		ir.Float8E8M0: {mask: 0x07, least: 0x78},
	}
}

// fill leaves the bits after the last element zero.
func (p pattern) fill(a *ir.Array, rng *rand.Rand) {
	for i := range a.Data {
		a.Data[i] = byte(rng.Uint32())&p.mask + p.least
	}
	if rest := a.Elems() * a.DType.Bits() % 8; rest > 0 {
		a.Data[len(a.Data)-1] &= 1<<rest - 1
	}
}
