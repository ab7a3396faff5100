package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// runs is a feed of ONNX test data: folders of input_N.pb and output_N.pb, where N is the position in the model. Each
// folder is one run of the model, of any batch size.
type runs struct {
	folders         []string
	inputs, outputs []Input
	opts            Options
	sizes           []int64 // bytes of the files of each folder
	found           []string
	total           atomic.Int64 // read
}

const (
	runInput  = "input_"
	runOutput = "output_"
	runFolder = "test_data_set_"
)

// openRuns opens a folder of .pb files, or a folder of such folders.
func openRuns(path string, inputs, outputs []Input, o Options) (*runs, error) {
	r := &runs{folders: []string{path}, inputs: inputs, outputs: outputs, opts: o}
	if files, folders, err := filesIn(path, ".pb"); err != nil {
		return nil, err
	} else if len(files) == 0 {
		r.folders = runFolders(path, folders)
	}
	if len(r.folders) == 0 {
		return nil, fmt.Errorf("%s: no folder named %s0 and so on, as in ONNX test data", path, runFolder)
	}
	for _, folder := range r.folders {
		if err := r.checkFolder(folder); err != nil {
			return nil, err
		}
	}
	for i, out := range outputs {
		if isFile(r.file(r.folders[0], runOutput, i)) {
			r.found = append(r.found, out.Name)
		}
	}
	return r, nil
}

// runFolders are the folders of test data sets, in the order of their numbers.
func runFolders(path string, folders []string) []string {
	number := func(name string) int {
		n, err := strconv.Atoi(strings.TrimPrefix(name, runFolder))
		if err != nil || !strings.HasPrefix(name, runFolder) {
			return -1
		}
		return n
	}
	folders = slices.DeleteFunc(folders, func(name string) bool { return number(name) < 0 })
	// As text, 10 would come before 2.
	slices.SortFunc(folders, func(a, b string) int { return number(a) - number(b) })
	for i, name := range folders {
		folders[i] = filepath.Join(path, name)
	}
	return folders
}

// checkFolder checks that a folder has a file for every input that is not filled.
func (r *runs) checkFolder(folder string) error {
	files, _, err := filesIn(folder, ".pb")
	if err != nil {
		return err
	}
	total := int64(0)
	for _, name := range files {
		st, err := os.Stat(filepath.Join(folder, name))
		if err != nil {
			return fileError(filepath.Join(folder, name), err)
		}
		total += st.Size()
	}
	r.sizes = append(r.sizes, total)
	for i, in := range r.inputs {
		_, fill := r.opts.Fill[in.Name]
		if path := r.file(folder, runInput, i); !fill && !isFile(path) {
			return fmt.Errorf("%s: no such file for input %q of the model; add it, or use --fill %s=VALUE", path,
				in.Name, in.Name)
		}
	}
	if path := r.file(folder, runInput, len(r.inputs)); isFile(path) {
		return fmt.Errorf("%s: the model has only %d inputs; check that this is its test data", path, len(r.inputs))
	}
	return nil
}

func (r *runs) file(folder, what string, i int) string {
	return filepath.Join(folder, what+strconv.Itoa(i)+".pb")
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

func (r *runs) len() int           { return len(r.folders) }
func (r *runs) size(int) int       { return 1 }
func (r *runs) random() error      { return nil }
func (r *runs) bytesRead() int64   { return r.total.Load() }
func (r *runs) resident() int64    { return 0 }
func (r *runs) labelled() bool     { return false }
func (r *runs) recorded() []string { return r.found }
func (r *runs) close() error       { return nil }

// bytes is that of the largest run; decoding varint integers needs up to 8 times the size.
func (r *runs) bytes(n int) int64 { return int64(n) * 8 * slices.Max(r.sizes) }

// transient is all of it: files are parsed into new arrays.
func (r *runs) transient(n int) int64 { return r.bytes(n) }

func (r *runs) load(index []int, memory *buffers) (func() (*Batch, error), error) {
	folder := r.folders[index[0]]
	// A run is a batch of its own, so that there is one index.
	r.total.Add(r.sizes[index[0]])
	return func() (*Batch, error) {
		b := &Batch{Inputs: map[string]*ir.Array{}, Outputs: map[string]*ir.Array{}}
		known := newSizes(r.opts.Dims)
		for i, in := range r.inputs {
			a, err := r.readValue(r.file(folder, runInput, i), in, in.dims(r.opts.Dims), memory)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			known.record(in.dims(r.opts.Dims), a.Shape)
			b.Inputs[in.Name] = a
		}
		for i, out := range r.outputs {
			// exporters declare wrong shapes of outputs, and runtimes ignore them
			a, err := r.readValue(r.file(folder, runOutput, i), out, nil, memory)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			b.Outputs[out.Name] = a
		}
		return b, known.fill(b.Inputs, r.inputs, r.opts.Fill, memory)
	}, nil
}

// readValue reads the file of one value and checks its type, and its shape if dims are not nil.
func (r *runs) readValue(path string, in Input, dims []ir.Dim, memory *buffers) (*ir.Array, error) {
	a, err := onnx.ReadValue(path, in.Kind)
	if err != nil || in.Kind != onnx.TensorValue {
		return a, err
	}
	if in.Type == nil {
		return a, nil
	}
	if dims != nil {
		if _, ok := fitExactly(dims, a.Shape); !ok {
			return nil, fmt.Errorf("%s: %s, but %q is %s; check that this is the model's test data", path, a, in.Name,
				typeText(in.Type))
		}
	}
	c, err := newChange(a.DType, in.elem(), a.Shape, Options{Scale: 1})
	if err == nil {
		a, err = c.apply(a, memory)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}
