package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A format is a way to keep samples in files, told by a file's name and first bytes, or
// by what a folder holds.
type format struct {
	name string
	is   func(at location) bool
	open func(paths []string, inputs []Input, o Options) (*samples, error)
}

// A location is what formats are told by.
type location struct {
	path           string
	head           []byte   // of a file, unpacked; nil for a folder
	files, folders []string // in a folder, of the ends that formats know
}

// formats are tried in this order; ONNX test data, which are no samples, come before.
func formats() []format {
	return []format{
		{"NumPy arrays (.npz)", starts("PK"), single(openNPZ)},
		{"a NumPy array (.npy)", starts(npyMagic), func(paths []string, _ []Input, _ Options) (*samples, error) {
			return openSingle(paths, func(c *content) (*array, error) { return parseNPY(c, "") })
		}},
		{"IDX (images,labels)", func(at location) bool { return isIDX(at.head) }, func(paths []string, _ []Input, _ Options) (*samples, error) {
			return openSingle(paths, parseIDX)
		}},
		{"CIFAR-10 (.bin)", ends(".bin"), func(paths []string, _ []Input, _ Options) (*samples, error) { return openCIFAR(paths) }},
		{"CSV (.csv, .tsv)", ends(".csv", ".tsv", ".csv.gz", ".tsv.gz"), func(paths []string, _ []Input, o Options) (*samples, error) {
			return single(func(path string) (*samples, error) { return openCSV(path, o) })(paths, nil, o)
		}},
		{"a folder of .npy", func(at location) bool { return at.has(".npy") }, single(openArrays)},
		{"a folder of images (.png, .jpg, .webp), or of a folder of them for each class", location.isPictures, openFolderOfPictures},
	}
}

func starts(magic string) func(location) bool {
	return func(at location) bool { return strings.HasPrefix(string(at.head), magic) }
}

func ends(with ...string) func(location) bool {
	return func(at location) bool {
		return at.head != nil && slices.ContainsFunc(with, func(end string) bool { return strings.HasSuffix(strings.ToLower(at.path), end) })
	}
}

// single is for formats that are one path.
func single(open func(string) (*samples, error)) func([]string, []Input, Options) (*samples, error) {
	return func(paths []string, _ []Input, _ Options) (*samples, error) {
		if len(paths) > 1 {
			return &samples{}, fmt.Errorf("%s: give one path; labels in another file go to --labels", strings.Join(paths, ","))
		}
		return open(paths[0])
	}
}

func openFolderOfPictures(paths []string, inputs []Input, o Options) (*samples, error) {
	var fed []Input
	for _, in := range inputs {
		if _, ok := o.Fill[in.Name]; !ok {
			fed = append(fed, in)
		}
	}
	if len(fed) != 1 {
		return &samples{}, fmt.Errorf("%s: images are for models of one input, not of %s; use --fill NAME=VALUE, or put arrays in an .npz file", paths[0], quoted(names(fed)))
	}
	return single(func(path string) (*samples, error) { return openPictures(path, fed[0], o) })(paths, nil, o)
}

// has reports whether the folder holds a file that ends like this.
func (at location) has(ends ...string) bool {
	return slices.ContainsFunc(at.files, func(name string) bool { return slices.Contains(ends, strings.ToLower(filepath.Ext(name))) })
}

// isRuns reports whether the folder is ONNX test data, or holds it.
func (at location) isRuns() bool {
	return at.has(".pb") || slices.ContainsFunc(at.folders, func(name string) bool { return strings.HasPrefix(name, runFolder) })
}

func (at location) isPictures() bool {
	for _, folder := range at.folders {
		if files, _, err := filesIn(filepath.Join(at.path, folder), imageEnds()...); err == nil && len(files) > 0 {
			return true
		}
	}
	return at.has(imageEnds()...)
}

// Open opens data for a model with these inputs. Arrays of the data that are named as
// outputs are recorded outputs. data is a path, or two with a comma between, of which the
// second one holds labels:
//
//   - an .npz file, or a folder of .npy files, whose arrays are named after the inputs,
//     the first axis being samples; labels in the array "labels"
//   - one .npy or IDX file for a model of one input, and its labels in another
//   - a .csv or .tsv file, for one input of all columns or for inputs named as columns
//   - CIFAR-10 records, in any number of .bin files
//   - a folder of images; of folders of images, where each is a class
//   - ONNX test data: a folder of input_N.pb and output_N.pb, or of such folders
//
// Files may be packed with gzip. Errors are of one line and say what to do; headers are
// checked against the files before memory is taken for what they say.
func Open(data string, inputs, outputs []Input, o Options) (*Set, error) {
	if err := o.check(inputs); err != nil {
		return nil, err
	}
	paths := []string{data}
	if _, err := os.Stat(data); err != nil {
		paths = strings.Split(data, ",")
	}
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
	for _, f := range formats() {
		if f.is(at) {
			return openSamples(f, paths, inputs, outputs, o)
		}
	}
	return nil, fmt.Errorf("%s: no data of a known kind; known are %s, and ONNX test data (input_0.pb)", paths[0], known())
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
	return set, nil
}

func locate(path string) (location, error) {
	at := location{path: path}
	st, err := os.Stat(path)
	if err != nil {
		return at, fileError(path, err)
	}
	if st.IsDir() {
		at.files, at.folders, err = filesIn(path, append(imageEnds(), ".npy", ".pb")...)
		return at, err
	}
	c, err := openFile(path)
	if err != nil {
		return at, err
	}
	defer c.Close()
	at.head = c.head(16)
	return at, nil
}

func known() string {
	var names []string
	for _, f := range formats() {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}
