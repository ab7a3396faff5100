package distill

import (
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/dataset"
	"github.com/mcompress/mcompress/ir"
)

// A source says what samples there are; its options are those of verify.
type source struct {
	data, labels, columns, mean, std, reshape, fill, dim string
	scale                                                float64
	limit                                                int
}

func (s *source) bind(fs *flag.FlagSet) {
	fs.StringVar(&s.data, "data", "", "`path` of samples: .npz, .npy, IDX, CSV, CIFAR-10, a folder of .npy, of images or of ONNX test data")
	fs.StringVar(&s.labels, "labels", "", "`name` of the array or column of labels, or path of a file of them (default: labels)")
	fs.StringVar(&s.columns, "columns", "", "`names` or numbers of the columns of a CSV that are the input, with commas")
	fs.Float64Var(&s.scale, "scale", 0, "`factor` of values: an input is (value·scale - mean)/std")
	fs.StringVar(&s.mean, "mean", "", "`numbers` to take from values, one or one a channel")
	fs.StringVar(&s.std, "std", "", "`numbers` to divide values by, one or one a channel")
	fs.StringVar(&s.reshape, "reshape", "", "`sizes` of the axes of one sample, with commas")
	fs.StringVar(&s.fill, "fill", "", "`name=number`, with commas, for every element of inputs that the data does not hold")
	fs.StringVar(&s.dim, "dim", "", "`name=size`, with commas, of open axes of the inputs")
	fs.IntVar(&s.limit, "limit", 0, "`number` of samples to read at most")
}

// open opens the data for inputs of m.
func (s *source) open(m *ir.Model, inputs []dataset.Input, workers int) (*dataset.Set, error) {
	o := dataset.Options{Labels: s.labels, Scale: s.scale, Limit: s.limit, Workers: workers, Columns: words(s.columns)}
	var err error
	take := func(name string, e error) {
		if err == nil && e != nil {
			err = fmt.Errorf("--%s: %w", name, e)
		}
	}
	var e error
	o.Mean, e = list(s.mean, parseFloat)
	take("mean", e)
	o.Std, e = list(s.std, parseFloat)
	take("std", e)
	o.Reshape, e = list(s.reshape, parseInt)
	take("reshape", e)
	o.Fill, e = pairs(s.fill, parseFloat)
	take("fill", e)
	o.Dims, e = pairs(s.dim, parseInt)
	take("dim", e)
	if err != nil {
		return nil, err
	}
	return dataset.Open(s.data, inputs, dataset.Outputs(m.Graph), o)
}

func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
func parseInt(text string) (int64, error)     { return strconv.ParseInt(text, 10, 64) }

// words are the items of a list with commas.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// list is the items of a list, parsed.
func list[T any](text string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	for _, w := range words(text) {
		x, err := parse(strings.TrimSpace(w))
		if err != nil {
			return nil, fmt.Errorf("%q is no number", w)
		}
		out = append(out, x)
	}
	return out, nil
}

// pairs are the items of a list of name=number.
func pairs[T any](text string, parse func(string) (T, error)) (map[string]T, error) {
	out := map[string]T{}
	for _, w := range words(text) {
		name, number, ok := strings.Cut(w, "=")
		x, err := parse(number)
		if !ok || err != nil {
			return nil, fmt.Errorf("%q is not name=number", w)
		}
		out[name] = x
	}
	return out, nil
}

// A size is an option's number of bytes: 1GiB is 2^30.
type size int64

// String is empty for no size.
func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return humanize.IBytes(uint64(*s))
}

// Set takes a positive number with or without a unit.
func (s *size) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > 1<<62 {
		return fmt.Errorf("no size: see 1GiB (2^30 bytes), 500MB (5·10^8 bytes)")
	}
	*s = size(n)
	return nil
}
