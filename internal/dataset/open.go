package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/remote"
)

// A format is a file format of samples, recognized by the name and first bytes of a file or by the contents of a
// folder.
type format struct {
	name string
	is   func(at location) bool
	open func(paths []string, inputs []Input, o Options) (*samples, error)
}

// A location has the properties by which formats are recognized.
type location struct {
	path           string
	head           []byte   // first bytes of a file, decompressed; nil for a folder
	files, folders []string // in a folder, with the extensions of the formats
}

// formats are tried in this order, after ONNX test data, which have runs instead of samples.
func formats() []format {
	return []format{
		{"NumPy arrays or a SciPy sparse matrix (.npz)", starts("PK"),
			func(paths []string, inputs []Input, o Options) (*samples, error) {
				return single(func(path string) (*samples, error) { return openNPZ(path, inputs) })(paths, inputs, o)
			}},
		{"a NumPy array (.npy)", starts(npyMagic), func(paths []string, inputs []Input, o Options) (*samples, error) {
			s, err := openSingle(paths, func(c *content) (*array, error) { return parseNPY(c, "") })
			if err != nil {
				return s, err
			}
			return asTokens(s, inputs, o)
		}},
		{"IDX (images,labels)", func(at location) bool {
			return isIDX(at.head)
		}, func(paths []string, _ []Input, _ Options) (*samples, error) {
			return openSingle(paths, parseIDX)
		}},
		{"CIFAR-10 or token ids (.bin)", ends(".bin"), func(paths []string, inputs []Input, o Options) (*samples, error) {
			// The extension is that of both; only language models read token ids.
			ids, ok := sequence(inputs)
			if !ok || len(paths) > 1 {
				return openCIFAR(paths)
			}
			s, err := openTokens(paths[0], ids)
			if err != nil {
				return s, err
			}
			return asTokens(s, inputs, o)
		}},
		{"CSV (.csv, .tsv)", isCSV, func(paths []string, _ []Input, o Options) (*samples, error) {
			return single(func(path string) (*samples, error) { return openCSV(path, o) })(paths, nil, o)
		}},
		{"a folder of .npy", func(at location) bool { return at.hasExtension(".npy") }, single(openArrays)},
		{"a folder of images (.png, .jpg, .webp), or of one folder per class", location.isImages, openImageFolder},
	}
}

var isCSV = ends(".csv", ".tsv", ".csv.gz", ".tsv.gz")

func starts(magic string) func(location) bool {
	return func(at location) bool { return strings.HasPrefix(string(at.head), magic) }
}

func ends(with ...string) func(location) bool {
	return func(at location) bool {
		return at.head != nil && slices.ContainsFunc(with, func(end string) bool {
			return strings.HasSuffix(strings.ToLower(at.path), end)
		})
	}
}

// single is for formats of one path.
func single(open func(string) (*samples, error)) func([]string, []Input, Options) (*samples, error) {
	return func(paths []string, _ []Input, _ Options) (*samples, error) {
		if len(paths) > 1 {
			return &samples{}, fmt.Errorf("%s: give one path, and labels in another file with --labels",
				strings.Join(paths, ","))
		}
		return open(paths[0])
	}
}

func openImageFolder(paths []string, inputs []Input, o Options) (*samples, error) {
	var fed []Input
	for _, in := range inputs {
		if _, ok := o.Fill[in.Name]; !ok {
			fed = append(fed, in)
		}
	}
	if len(fed) != 1 {
		return &samples{}, fmt.Errorf("%s: images are for models of one input, not of %s; use --fill NAME=VALUE, or put "+
			"arrays in an .npz file", paths[0], quoteList(names(fed)))
	}
	return single(func(path string) (*samples, error) { return openImages(path, fed[0], o) })(paths, nil, o)
}

// hasExtension reports whether the folder has a file with this extension.
func (at location) hasExtension(ends ...string) bool {
	return slices.ContainsFunc(at.files, func(name string) bool {
		return slices.Contains(ends, strings.ToLower(filepath.Ext(name)))
	})
}

// isRuns reports whether the folder is or contains ONNX test data.
func (at location) isRuns() bool {
	return at.hasExtension(".pb") || slices.ContainsFunc(at.folders, func(name string) bool {
		return strings.HasPrefix(name, runFolder)
	})
}

func (at location) isImages() bool {
	return at.head == nil && slices.ContainsFunc(append([]string{"."}, at.folders...), func(folder string) bool {
		files, _, err := imagesIn(filepath.Join(at.path, folder))
		return err == nil && len(files) > 0
	})
}

// Open opens data for a model with these inputs. Arrays named after outputs are recorded outputs. data is a path, or
// two paths separated by a comma, the second one with labels:
//
//   - an .npz file, or a folder of .npy files, whose arrays are named after the inputs,
//     the first axis being samples; labels in the array "labels": class numbers, whole floats, words or one-hot rows
//   - an .npz file of scipy.sparse.save_npz, for a model of one input: its samples are the rows of the matrix
//   - one .npy or IDX file for a model of one input, and its labels in another
//   - a .csv or .tsv file, for one input of all columns or for inputs named after columns
//   - CIFAR-10 records, in any number of .bin files
//   - for a language model, token ids: an .npy file of one axis, or a .bin file of 16 or 32 bits each;
//     samples are consecutive tokens
//   - a folder of images, recognized by their first bytes; or one folder of images per class. Hidden files and
//     folders, and folders without images, are left out
//   - ONNX test data: a folder of input_N.pb and output_N.pb, or of such folders
//
// Files may be at URLs, and compressed with gzip. Errors have one line with a remedy. Headers are checked against the
// size of the file before memory is allocated.
func Open(data string, inputs, outputs []Input, o Options) (*Set, error) {
	if err := o.validate(inputs); err != nil {
		return nil, err
	}
	if err := checkCarry(o.Carry, inputs, outputs); err != nil {
		return nil, err
	}
	paths := paths(data)
	at, err := locate(paths[0])
	if err != nil {
		return nil, err
	}
	if at.isRuns() {
		r, err := openRuns(data, inputs, outputs, o)
		if err != nil {
			return nil, err
		}
		return newSet(r, o), nil
	}
	if _, language := sequence(inputs); language && isText(at) {
		return nil, fmt.Errorf("%s: texts are not tokenized; write the ids of their tokens with the model's tokenizer, "+
			"as .npy or as .bin of 16 or 32 bits", paths[0])
	}
	for _, f := range formats() {
		if f.is(at) {
			return openSamples(f, paths, inputs, outputs, o)
		}
	}
	return nil, fmt.Errorf("%s: unknown data format; supported: %s, and ONNX test data (input_0.pb)",
		paths[0], formatNames())
}

// paths are the path in data, or several separated by commas.
func paths(data string) []string {
	// A file whose name has a comma is one path.
	if _, err := os.Stat(data); err != nil {
		return strings.Split(data, ",")
	}
	return []string{data}
}

func openSamples(f format, paths []string, inputs, outputs []Input, o Options) (*Set, error) {
	s, err := f.open(paths, inputs, o)
	if err == nil && s.labels == nil {
		err = s.takeLabels(o.Labels)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	t, err := newTable(s, inputs, outputs, o)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	set := newSet(t, o)
	set.classes = s.classes
	if err := set.draw(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return set, nil
}

func locate(path string) (location, error) {
	at := location{path: remote.Shown(path)}
	if !remote.Is(path) {
		st, err := os.Stat(path)
		if err != nil {
			return at, fileError(path, err)
		}
		if st.IsDir() {
			at.files, at.folders, err = filesIn(path, ".npy", ".pb")
			return at, err
		}
	}
	c, err := openFile(path)
	if err != nil {
		return at, err
	}
	defer c.Close()
	at.head = c.head(16)
	return at, nil
}

func formatNames() string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}
