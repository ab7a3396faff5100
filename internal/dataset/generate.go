package dataset

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// Random says how Generate makes inputs up.
type Random struct {
	Seed    uint64
	Samples int                 // runs of the model; 0 for one
	Batch   int64               // of first axes that are open; 0 for 1
	Dims    map[string]int64    // sizes of open axes by their names
	Ranges  map[string][2]int64 // smallest and largest value of integer inputs by their names
	Fill    map[string]float64  // inputs whose every element has this value
	Workers int                 // 0 for one a processor
	Memory  int64               // bytes of inputs made ahead; 0 for 64 MiB
}

// Generate makes up r.Samples runs of a model with these inputs, from r.Seed alone: the
// same on every machine, and the same input whatever the others are. A run counts as one
// sample.
//
// Floating-point inputs are standard normal; bools are even; integers are uniform in
// r.Ranges, else in the range of 8-bit types, 1 where the name says mask, or 0 and 1, as
// larger ones mostly are indices into something; strings are short words. An open first
// axis is r.Batch long, the third axis on of images and the like 64, any other 16, if
// r.Dims does not say.
func Generate(inputs []Input, r Random) (*Set, error) {
	o := Options{Fill: r.Fill, Dims: r.Dims, Workers: r.Workers, Memory: r.Memory}
	if err := o.check(inputs); err != nil {
		return nil, err
	}
	g := &generator{inputs: inputs, how: r}
	g.how.Samples = max(r.Samples, 1)
	specs, err := specsOf(inputs, r)
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		if err := g.possible(in, specs[i]); err != nil {
			return nil, err
		}
		g.held += specs[i].Bytes()
	}
	g.specs = specs
	return newSet(g, o), nil
}

// Specs are the types of the inputs that Generate makes up, in their order. They may be larger
// than what it would make.
func Specs(inputs []Input, r Random) ([]ir.Spec, error) {
	if err := checkDims(inputs, r.Dims); err != nil {
		return nil, err
	}
	return specsOf(inputs, r)
}

func specsOf(inputs []Input, r Random) ([]ir.Spec, error) {
	r.Batch = max(r.Batch, 1)
	shapes := newAxes(inputs, r)
	specs := make([]ir.Spec, len(inputs))
	for i, in := range inputs {
		spec, err := shapes.spec(in)
		if err != nil {
			return nil, err
		}
		spec.Name = in.Name
		specs[i] = spec
	}
	return specs, nil
}

// A generator is a feed of made-up runs.
type generator struct {
	inputs []Input
	specs  []ir.Spec
	how    Random
	held   int64 // bytes of a run
}

func (g *generator) len() int           { return g.how.Samples }
func (g *generator) size(int) int       { return 1 }
func (g *generator) bytes(n int) int64  { return int64(n) * g.held }
func (g *generator) random() error      { return nil }
func (g *generator) labelled() bool     { return false }
func (g *generator) recorded() []string { return nil }
func (g *generator) close() error       { return nil }

// possible reports what cannot be made up, before memory is taken.
func (g *generator) possible(in Input, spec ir.Spec) error {
	if err := spec.Valid(); err != nil || spec.Elems() > maxSample/16 || spec.Bytes() > maxSample {
		return fmt.Errorf("input %q would be %s, which is too large; set smaller sizes with --dim", in.Name, spec)
	}
	if v, ok := g.how.Fill[in.Name]; ok {
		_, err := filled(in, nil, v)
		return err
	}
	if isInteger(spec.DType) {
		lo, hi := g.span(in)
		ends := ir.NewArray(spec.DType, 2)
		if lo > hi || writer[int64](spec.DType)(ends, 0, []int64{lo, hi}) >= 0 {
			return fmt.Errorf("input %q: %s has no range from %d to %d", in.Name, spec.DType, lo, hi)
		}
	}
	_, err := g.make(in, ir.Spec{DType: spec.DType, Shape: []int64{1}}, 0)
	return err
}

func (g *generator) load(index []int) (func() (*Batch, error), error) {
	run := index[0]
	return func() (*Batch, error) {
		b := &Batch{Inputs: map[string]*ir.Array{}, Outputs: map[string]*ir.Array{}}
		for i, in := range g.inputs {
			var err error
			if v, ok := g.how.Fill[in.Name]; ok {
				b.Inputs[in.Name], err = filled(in, g.specs[i].Shape, v)
			} else {
				b.Inputs[in.Name], err = g.make(in, g.specs[i], run)
			}
			if err != nil {
				return nil, err
			}
		}
		return b, nil
	}, nil
}

// make makes in of one run. Its numbers follow from seed, name and run.
func (g *generator) make(in Input, spec ir.Spec, run int) (*ir.Array, error) {
	name := fnv.New64a()
	name.Write([]byte(in.Name))
	rng := rand.New(rand.NewPCG(g.how.Seed, name.Sum64()+uint64(run)*oddStep))
	a := ir.NewArray(spec.DType, spec.Shape...)
	switch dt := spec.DType; {
	case dt == ir.String:
		words(a.Text, rng)
	case dt.IsFloat():
		normal(a, rng)
	case dt == ir.Complex64:
		normal(ir.ArrayOf(ir.View[float32](&ir.Array{DType: ir.Float, Data: a.Data}), 2*a.Elems()), rng)
	case dt == ir.Complex128:
		normal(ir.ArrayOf(ir.View[float64](&ir.Array{DType: ir.Double, Data: a.Data}), 2*a.Elems()), rng)
	case isInteger(dt):
		g.integers(in, a, rng)
	default:
		p, ok := patterns()[dt]
		if !ok {
			return nil, fmt.Errorf("input %q: no random %s can be made; give --data", in.Name, dt)
		}
		p.fill(a, rng)
	}
	return a, nil
}

// oddStep spreads runs over the streams of the generator (2^64 by the golden ratio).
const oddStep = 0x9e3779b97f4a7c15

// normal fills a with standard normal numbers; the largest that come are below 10.
func normal(a *ir.Array, rng *rand.Rand) {
	blocks(a, func(part []float64) {
		for i := range part {
			part[i] = rng.NormFloat64()
		}
	})
}

// blocks fills a with what next puts into one part after another; all of it fits.
func blocks[W int64 | float64](a *ir.Array, next func([]W)) {
	n, write := a.Elems(), writer[W](a.DType)
	part := make([]W, min(block, n))
	for at := int64(0); at < n; at += block {
		part = part[:min(block, n-at)]
		next(part)
		write(a, at, part)
	}
}

// integers fills a with integers in the range of in, which fits its type.
func (g *generator) integers(in Input, a *ir.Array, rng *rand.Rand) {
	lo, hi := g.span(in)
	blocks(a, func(part []int64) {
		for i := range part {
			part[i] = lo + int64(below(rng, uint64(hi)-uint64(lo)))
		}
	})
}

// below is a uniform number from 0 to most.
func below(rng *rand.Rand, most uint64) uint64 {
	if most == math.MaxUint64 {
		return rng.Uint64()
	}
	return rng.Uint64N(most + 1)
}

func (g *generator) span(in Input) (lo, hi int64) {
	if span, ok := g.how.Ranges[in.Name]; ok {
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

// words fills text with words of no meaning, of one to three syllables.
func words(text []string, rng *rand.Rand) {
	syllables := []string{"ba", "den", "ko", "lu", "mi", "nor", "pe", "ra", "sil", "tu", "ve", "zan"}
	for i := range text {
		for range 1 + rng.IntN(3) {
			text[i] += syllables[rng.IntN(len(syllables))]
		}
	}
}

// A pattern makes bytes of a type that Go does not have: mask keeps them in a range of
// small numbers that has no NaN and no infinity, least is added.
type pattern struct{ mask, least byte }

func patterns() map[ir.DType]pattern {
	all := pattern{mask: 0xff}
	return map[ir.DType]pattern{
		// Every pattern of these is a number.
		ir.Uint4: all, ir.Int4: all, ir.Uint2: all, ir.Int2: all, ir.Float4E2M1: all, ir.Float6E2M3: all, ir.Float6E3M2: all,
		// Both signs, below 2; the types without a negative zero have NaN there.
		ir.Float8E4M3FN:   {mask: 0xbf},
		ir.Float8E5M2:     {mask: 0xbf},
		ir.Float8E4M3FNUZ: {mask: 0x3f, least: 1},
		ir.Float8E5M2FNUZ: {mask: 0x3f, least: 1},
		// 2^-7 to 1.
		ir.Float8E8M0: {mask: 0x07, least: 0x78},
	}
}

// fill leaves the bits behind the last element zero.
func (p pattern) fill(a *ir.Array, rng *rand.Rand) {
	for i := range a.Data {
		a.Data[i] = byte(rng.Uint32())&p.mask + p.least
	}
	if rest := a.Elems() * a.DType.Bits() % 8; rest > 0 {
		a.Data[len(a.Data)-1] &= 1<<rest - 1
	}
}
