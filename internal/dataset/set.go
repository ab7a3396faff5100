package dataset

import (
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
)

// Options specify the conversion of data to a model's inputs. The zero value converts types and shapes only.
type Options struct {
	Labels  string   // an array or column of the data, or a file; empty for the array "labels"
	Columns []string // of a CSV, by name or by number from 0; empty for all but the labels

	// Classes are the names of the classes in the order of their numbers; another name is an error. Without them the
	// names in the data are numbered in alphabetical order.
	Classes []string

	// Verbatim keeps labels that are words or one-hot as they are, for metrics that read them; without it they are the
	// numbers of classes.
	Verbatim bool

	// A value x of a floating-point input becomes (x*Scale - Mean)/Std. Mean and Std
	// have one item, or one per channel.
	Scale     float64
	Mean, Std []float64

	Reshape []int64            // of one sample
	Layout  Layout             // of one sample in the data, after Reshape; unknown to conclude it from the shapes
	Fill    map[string]float64 // inputs that are not in the data: the value of all elements
	Dims    map[string]int64   // sizes of the model's open axes by their names
	// number of samples; 0 for all. They are drawn evenly from the classes of labels; without classes they are the
	// first
	Limit int
	Carry []Pair // outputs that are inputs of the next run, besides caches of language models
	Step  int64  // tokens in a run of Sequences; 0 for all but the last few, and these one by one

	Workers  int    // worker threads, the default of Loaders and of Prefetch; 0 for one per processor
	Prefetch *int   // batches read ahead; nil for Workers batches, within Memory
	Loaders  int    // goroutines that convert and decode batches; 0 for Workers
	Memory   int64  // bytes of batches without Prefetch; 0 for 64 MiB
	TempDir  string // for decompressed files, to shuffle them; empty for the system's
}

const (
	defaultMemory = 64 << 20
	// maxSample bounds the memory for one sample, against invalid headers.
	maxSample = 1 << 30
)

// A Batch has the inputs of one run of the model.
type Batch struct {
	Inputs  map[string]*ir.Array
	Labels  *ir.Array            // first axis samples; integers are Int64; nil without labels
	Outputs map[string]*ir.Array // recorded ones, by the names of the model's outputs
	N       int                  // samples
	First   int                  // number of samples before it, in this order
	Step    int                  // number of runs before it on the same samples, by Sequences
	Last    bool                 // no run on these samples follows
	// of token ids: for each sample the token after each token of the run, one less at the end
	Targets [][]int64

	// Attended is 1 for the tokens of sequences and 0 for padding, by the attention masks in the data: float32
	// [samples, tokens], of all runs on the same samples. It is nil without such a mask.
	Attended *ir.Array
}

// Classes are the labels as one class per sample, nil if they are not integers of one per sample.
func (b *Batch) Classes() []int64 {
	if b.Labels == nil || b.Labels.DType != ir.Int64 || b.Labels.Elems() != int64(b.N) {
		return nil
	}
	return ir.View[int64](b.Labels)
}

// A Set is data opened for a model. Its files are open until Close.
type Set struct {
	feed    feed
	opts    Options
	count   int
	rest    int
	drawn   []int // samples of Options.Limit, in order; nil for the first ones
	classes []string
	chosen  *axes // with the sizes of dynamic axes that are not from the data; may be nil
	stats   stats

	recycler recycler
}

// A feed is the source of a Set's batches.
type feed interface {
	// len is the number of samples.
	len() int
	// size is the batch size if want is requested: a batch size fixed by the model takes precedence.
	size(want int) int
	// bytes bounds the memory of a batch of n samples during loading.
	bytes(n int) int64
	// transient bounds the part of it that is allocated anew for each batch, also with Order.Reuse.
	transient(n int) int64
	// resident is the memory of data that is held between batches.
	resident() int64
	// load reads samples. One goroutine calls it in the order of batches. The function it returns makes the batch and
	// may run concurrently with those of other batches. Both take memory from to, which may be nil.
	load(index []int, to *buffers) (func() (*Batch, error), error)
	// random prepares fast loading in any order.
	random() error
	// bytesRead is the number of bytes read from files until now, decompressed.
	bytesRead() int64
	// labelled and recorded report whether batches have labels, and their recorded outputs.
	labelled() bool
	recorded() []string
	close() error
}

func newSet(f feed, o Options) *Set {
	s := &Set{feed: f, opts: o, count: f.len()}
	if o.Limit > 0 {
		s.count = min(s.count, o.Limit)
	}
	// The model fixes the batch size if it does not depend on the requested one.
	if fixed := f.size(1); fixed > 1 {
		s.rest = s.count % fixed
		s.count -= s.rest
	}
	return s
}

// Len is the number of samples of Batches. If the data are whole runs of the model (ONNX test data, random inputs), a
// run counts as one sample.
func (s *Set) Len() int { return s.count }

// Rest is the number of samples at the end that are omitted because they do not fill a batch of the model's fixed size.
func (s *Set) Rest() int { return s.rest }

// Size is the batch size if want is requested: the size of a fixed batch axis, 1 without a batch axis, else want.
func (s *Set) Size(want int) int { return s.feed.size(max(want, 1)) }

// Labelled reports whether batches have labels.
func (s *Set) Labelled() bool { return s.feed.labelled() }

// ClassLabels is the shape of the labels of a sample that are classes, which are integers: one element, or one for each
// token or pixel. ok is false without such labels.
func (s *Set) ClassLabels() (shape []int64, ok bool) {
	t, ok := s.feed.(*table)
	if !ok || t.labels == nil || t.labels.conversion.to != ir.Int64 {
		return nil, false
	}
	return t.labels.shape, true
}

// Classified reports whether batches have one class as the label of each sample.
func (s *Set) Classified() bool {
	shape, ok := s.ClassLabels()
	return ok && elems(shape) == 1
}

// Countable is the set with labels, token ids and attention masks alone, which need little time to read. It must not be
// closed.
func (s *Set) Countable() *Set {
	t, ok := s.feed.(*table)
	if !ok {
		return s
	}
	light := *t
	light.derive, light.fills, light.outputs = nil, nil, nil
	light.inputs = slices.DeleteFunc(slices.Clone(t.inputs), func(b binding) bool {
		return b.Name != t.ids && b.role() != mask
	})
	return &Set{feed: &light, opts: s.opts, count: s.count, rest: s.rest, drawn: s.drawn}
}

// Recorded are the names of the outputs that batches have, in the model's order.
func (s *Set) Recorded() []string { return s.feed.recorded() }

// ClassNames are the names of the classes in the order of the labels; nil if the data has numeric labels.
func (s *Set) ClassNames() []string { return s.classes }

// Close closes the files and removes temporary files.
func (s *Set) Close() error { return s.feed.close() }

// validate rejects invalid options and sets defaults.
func (o *Options) validate(inputs []Input) error {
	for _, name := range slices.Sorted(maps.Keys(o.Fill)) {
		if !slices.Contains(names(inputs), name) {
			return pass.OptionErrorf("fill %q: no such input; the inputs are %s", name, quoteList(names(inputs)))
		}
	}
	for _, f := range slices.Concat([]float64{o.Scale}, o.Mean, o.Std) {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return pass.OptionErrorf("scale, mean and std must be finite numbers, not %v", f)
		}
	}
	if slices.Contains(o.Std, 0) {
		return pass.OptionErrorf("std must not be 0")
	}
	for _, n := range o.Reshape {
		if n < 1 {
			return pass.OptionErrorf("reshape %v: the sizes of one sample must be positive", o.Reshape)
		}
	}
	if o.Layout != UnknownLayout && o.Layout != CHW && o.Layout != HWC {
		return pass.OptionErrorf("layout %q: use chw or hwc", o.Layout)
	}
	if o.Prefetch != nil && *o.Prefetch < 0 {
		return pass.OptionErrorf("prefetch %d: must be 0 or a positive number", *o.Prefetch)
	}
	if o.Loaders < 0 {
		return pass.OptionErrorf("loaders %d: must be a positive number", o.Loaders)
	}
	for i, name := range o.Classes {
		if slices.Contains(o.Classes[:i], name) {
			return pass.OptionErrorf("classes: %q is named twice", name)
		}
	}
	o.setDefaults()
	return CheckDims(inputs, o.Dims)
}

func (o *Options) setDefaults() {
	if o.Scale == 0 {
		o.Scale = 1
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Loaders <= 0 {
		o.Loaders = o.Workers
	}
	if o.Memory <= 0 {
		o.Memory = defaultMemory
	}
}

// quoteList lists names for a message, at most the first few.
func quoteList(names []string) string {
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
