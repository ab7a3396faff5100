package dataset

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// Options say how data becomes a model's inputs. Zero values mean as it comes.
type Options struct {
	Labels  string   // an array or column of the data, or a file; empty for the array "labels"
	Columns []string // of a CSV, by name or by number from 0; empty for all but the labels

	// A value x of a floating-point input becomes (x*Scale - Mean)/Std. Mean and Std
	// have one item, or one a channel.
	Scale     float64
	Mean, Std []float64

	Reshape []int64            // of one sample
	Fill    map[string]float64 // inputs that the data does not hold: every element has this value
	Dims    map[string]int64   // sizes of the model's open axes by their names
	Limit   int                // use the first samples only; 0 for all

	Workers int    // that convert and decode; 0 for one a processor
	Memory  int64  // bytes of batches read ahead; 0 for 64 MiB
	TempDir string // for what must be unpacked to be shuffled; empty for the system's
}

const (
	defaultMemory = 64 << 20
	// maxSample bounds what a header can make us take for one sample.
	maxSample = 1 << 30
)

// A Batch is what one run of the model is fed.
type Batch struct {
	Inputs  map[string]*ir.Array
	Labels  *ir.Array            // first axis samples; integers are Int64; nil without labels
	Outputs map[string]*ir.Array // recorded ones, by the names of the model's outputs
	N       int                  // samples
	First   int                  // how many came before, in this order
}

// Classes are the labels as one class a sample, nil where they are no such integers.
func (b *Batch) Classes() []int64 {
	if b.Labels == nil || b.Labels.DType != ir.Int64 || b.Labels.Elems() != int64(b.N) {
		return nil
	}
	return ir.View[int64](b.Labels)
}

// A Set is data that was opened for a model. Its files stay open until Close.
type Set struct {
	feed    feed
	opts    Options
	count   int
	rest    int
	classes []string
}

// A feed is where a Set's batches come from.
type feed interface {
	// len is the number of samples.
	len() int
	// size is the number of samples in a batch, where want are asked for: what the model
	// fixes goes first.
	size(want int) int
	// bytes bounds what a batch of n samples holds while it is made.
	bytes(n int) int64
	// load reads samples. It is called by one goroutine, in the order of batches; the
	// function it returns makes the batch of them, beside those of other batches.
	load(index []int) (func() (*Batch, error), error)
	// random makes load fast in any order.
	random() error
	// labelled and recorded say what batches hold beside inputs.
	labelled() bool
	recorded() []string
	close() error
}

func newSet(f feed, o Options) *Set {
	s := &Set{feed: f, opts: o, count: f.len()}
	if o.Limit > 0 {
		s.count = min(s.count, o.Limit)
	}
	// Where every batch size is the same one, the model fixes it.
	if fixed := f.size(1); fixed > 1 {
		s.rest = s.count % fixed
		s.count -= s.rest
	}
	return s
}

// Len is the number of samples that Batches gives. Where data are whole runs of the
// model, as ONNX test data and generated inputs are, a run counts as one sample.
func (s *Set) Len() int { return s.count }

// Rest is the number of samples at the end that do not fill a batch of the fixed size
// that the model takes, and are left out.
func (s *Set) Rest() int { return s.rest }

// Size is the number of samples in a batch where want are asked for: a model with a
// fixed batch axis takes that many, one without takes one.
func (s *Set) Size(want int) int { return s.feed.size(max(want, 1)) }

// Held is the bytes of batches of so many samples that Batches keeps in memory at once: the one in the loop, and those that
// are read ahead.
func (s *Set) Held(n int) int64 {
	one := s.feed.bytes(s.Size(n))
	return max(one, min(s.opts.Memory, one*int64(s.opts.Workers+2)))
}

// Labelled reports whether batches have labels.
func (s *Set) Labelled() bool { return s.feed.labelled() }

// Recorded are the names of the outputs that batches have, in the model's order.
func (s *Set) Recorded() []string { return s.feed.recorded() }

// ClassNames are the names behind labels that were names in the data, in the order of the
// labels; nil where labels were numbers.
func (s *Set) ClassNames() []string { return s.classes }

// Close closes the files and removes what was unpacked.
func (s *Set) Close() error { return s.feed.close() }

// check reports options that fit no data, and sets those that were left out.
func (o *Options) check(inputs []Input) error {
	for _, name := range slices.Sorted(maps.Keys(o.Fill)) {
		if !slices.Contains(names(inputs), name) {
			return fmt.Errorf("fill %q: the model has no such input; it has %s", name, quoted(names(inputs)))
		}
	}
	for _, f := range slices.Concat([]float64{o.Scale}, o.Mean, o.Std) {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("scale, mean and std must be finite numbers, not %v", f)
		}
	}
	if slices.Contains(o.Std, 0) {
		return fmt.Errorf("std is 0; values are divided by it")
	}
	for _, n := range o.Reshape {
		if n < 1 {
			return fmt.Errorf("reshape %v: give the sizes of one sample, each at least 1", o.Reshape)
		}
	}
	o.setDefaults()
	return checkDims(inputs, o.Dims)
}

func (o *Options) setDefaults() {
	if o.Scale == 0 {
		o.Scale = 1
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
}

// quoted lists names for a message, the first few of many.
func quoted(names []string) string {
	const most = 12
	var b strings.Builder
	for i, n := range names {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(names)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", n)
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}
