package main

import (
	"flag"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/mcompress/mcompress"
	mcli "github.com/mcompress/mcompress/internal/cli"
	"github.com/mcompress/mcompress/pass"
)

// randomInputFlags are the flags of random inputs.
type randomInputFlags struct {
	dims mcli.Dims
	seed uint64
}

func (m *randomInputFlags) declare(fs *flag.FlagSet) {
	dimFlag(fs, &m.dims)
	fs.Uint64Var(&m.seed, "seed", 0, "seed of random inputs, a `number`")
}

func dimFlag(fs *flag.FlagSet, to *mcli.Dims) {
	fs.Var(to, "dim", "`name=size` of a dynamic axis of the inputs (input:index if it has no name); may be repeated (default: 16, of images 64, or a size that the graph requires)")
}

// sampling has the flags of the samples that a model is run on, which all commands that compare models have.
type sampling struct {
	randomInputFlags
	data, labels        string
	columns             mcli.Words
	names               mcli.Words // of classes
	scale               float64
	mean, std           mcli.Numbers
	reshape             mcli.Counts
	layout              string
	constants           mcli.Values
	carry               pass.List
	step                int
	limit, random, size int
	prefetch            *int
	loaders             int
	training            *mcompress.Data // data of the method, whose classes number the labels of a test set
	fs                  *flag.FlagSet   // that declares them
}

func (s *sampling) flags() []cli.Flag { return group("data", s.declare) }

func (s *sampling) declare(fs *flag.FlagSet) {
	s.fs = fs
	fs.StringVar(&s.data, "data", "", "`path` of samples: .npz, .npy, IDX, CSV, CIFAR-10, a folder of .npy, of images or of ONNX test data (default: random inputs)")
	fs.StringVar(&s.labels, "labels", "", "`name` of the array or column of labels, or path of a file of them (default: labels)")
	fs.Var(&s.names, "classes", "comma-separated `names` of the classes in the order of their numbers (default: those of the data, sorted)")
	fs.Var(&s.columns, "columns", "comma-separated `names` or numbers of the input columns of a CSV")
	fs.Float64Var(&s.scale, "scale", 0, "`factor` of values: an input is (value·scale - mean)/std")
	fs.Var(&s.mean, "mean", "comma-separated `numbers` subtracted from values: one, or one per channel")
	fs.Var(&s.std, "std", "comma-separated `numbers` by which values are divided: one, or one per channel")
	fs.Var(&s.reshape, "reshape", "comma-separated `sizes` of the axes of one sample")
	fs.StringVar(&s.layout, "layout", "", "`order` of the axes of one image in arrays: chw, hwc; its channels are moved to where the model has them (default: from the shapes)")
	fs.Var(&s.constants, "fill", "`name=number`: the value of every element of an input that is not in the data; may be repeated")
	fs.Var(&s.carry, "carry", "`output=input`: an output of a run that is an input of the next one, besides caches of language models; may be repeated")
	fs.IntVar(&s.step, "step", 0, "maximum `number` of tokens in a run of a language model with caches (default: all but the last 8 of a sample, and these one by one)")
	fs.IntVar(&s.limit, "limit", 0, "maximum `number` of samples to read from --data")
	fs.Func("prefetch", "`number` of batches read ahead; 0 reads each when it is needed (default: the number of worker threads, up to 64 MiB)", func(text string) error {
		n, err := strconv.Atoi(text)
		s.prefetch = &n
		return err
	})
	fs.IntVar(&s.loaders, "loaders", 0, "`number` of goroutines that decode and convert batches (default: the number of worker threads)")
	fs.IntVar(&s.size, "batch", 0, "batch size of verification, a `number`, if the batch axis is dynamic (default: 1)")
	fs.IntVar(&s.random, "samples", 0, "`number` of random samples (default: 1 to 8, by the size of the model)")
	s.randomInputFlags.declare(fs)
}

// samples is the data of the flags, without a path for random inputs.
func (s *sampling) samples() mcompress.Data {
	d := mcompress.Data{
		Path: s.data, Labels: s.labels, Columns: pass.List(s.columns), Classes: pass.List(s.names), Scale: s.scale, Mean: pass.Numbers(s.mean), Std: pass.Numbers(s.std),
		Reshape: pass.Sizes(s.reshape), Layout: s.layout, Fill: listOf(&s.constants), Dims: listOf(&s.dims), Carry: s.carry, Step: s.step,
		Prefetch: s.prefetch, Loaders: s.loaders, Limit: s.limit,
	}
	return d
}

// listOf is the items of a flag of several values.
func listOf(v flag.Value) (list pass.List) {
	if text := v.String(); text != "" {
		list = strings.Split(text, ",")
	}
	return list
}

// fill sets the samples of v.
func (s *sampling) fill(v *mcompress.Verification) {
	v.Data, v.Training, v.Batch, v.Samples, v.Seed = s.samples(), s.training, s.size, s.random, s.seed
}

// shares reports whether a method's option of that name has the meaning of the flag. Batch and seed of a method differ from those
// of verification.
func (s *sampling) shares(option string) bool {
	return option != "batch" && option != "seed" && s.fs.Lookup(option) != nil
}

// adopt sets the samples for verification: those of test, or the calibration or training data of the method if there is
// no test set. --limit applies to the data of the method only, and label files belong to one data set.
func (s *sampling) adopt(given []pass.Option, test testSet) error {
	if err := test.check(); err != nil {
		return err
	}
	for _, o := range given {
		if !s.shares(o.Name) {
			continue
		}
		values := []string{o.Value}
		if o.Name == "fill" || o.Name == "dim" || o.Name == "carry" {
			values = strings.Split(o.Value, ",")
		}
		for _, v := range values {
			if err := s.fs.Set(o.Name, v); err != nil {
				return usagef("invalid value %q for --%s: %v", v, o.Name, err)
			}
		}
	}
	if test.path == "" {
		return nil
	}
	if s.data != "" {
		s.training = &mcompress.Data{Path: s.data, Labels: s.labels, Columns: pass.List(s.columns)}
	}
	s.data, s.limit = test.path, test.limit
	if st, err := os.Stat(s.labels); err == nil && st.Mode().IsRegular() || test.labels != "" {
		s.labels = test.labels
	}
	return nil
}

// A testSet is the samples of --test, for methods that have calibration or training data of their own.
type testSet struct {
	path, labels string
	limit        int
}

func (t *testSet) flags() []cli.Flag {
	return group("data", func(fs *flag.FlagSet) {
		fs.StringVar(&t.path, "test", "", "`path` of the test samples for verification, in any format of --data (default: the samples of --data)")
		fs.StringVar(&t.labels, "test-labels", "", "`name` of the array or column of labels in --test, or path of a file of them (default: the name in --labels)")
		fs.IntVar(&t.limit, "test-limit", 0, "maximum `number` of test samples")
	})
}

func (t *testSet) check() error {
	switch {
	case t.limit < 0:
		return usagef("--test-limit %d: must be a positive number", t.limit)
	case t.path == "" && t.labels != "":
		return usagef("--test-labels requires --test")
	case t.path == "" && t.limit != 0:
		return usagef("--test-limit requires --test")
	}
	return nil
}
