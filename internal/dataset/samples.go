package dataset

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// samples are the arrays of a data set of one format, unconverted.
type samples struct {
	path    string
	names   []string                          // of the arrays, if the format has names
	open    func(name string) (column, error) // the array of that name, or nil
	only    column                            // the array of a format without names
	labels  column                            // nil without labels
	classes []string                          // names of the classes, if the data has them
	closers []io.Closer
	read    atomic.Int64 // bytes
	images  atomic.Int64 // bytes of decoded images in memory
}

// file opens a file until s is closed.
func (s *samples) file(path string) (*content, error) {
	c, err := openFile(path)
	if err == nil {
		c.read = &s.read
		s.closers = append(s.closers, c)
	}
	return c, err
}

// column is the array for the model's input name; alone is set for a model of one input.
func (s *samples) column(name string, alone bool) (column, error) {
	if s.only != nil && alone {
		return s.only, nil
	}
	if s.open == nil {
		return nil, fmt.Errorf("%s: the data is one array, but the model has more inputs than %q; put arrays named after "+
			"them in an .npz file, or use --fill NAME=VALUE", s.path, name)
	}
	c, err := s.open(name)
	if c == nil && err == nil {
		err = fmt.Errorf("%s: no array for input %q; it has %s: rename one, or use --fill %s=VALUE for a constant input",
			s.path, name, quoteList(s.names), name)
	}
	return c, err
}

// hasArray reports whether the data has an array of that name.
func (s *samples) hasArray(name string) (bool, error) {
	if s.open == nil {
		return false, nil
	}
	c, err := s.open(name)
	return c != nil, err
}

// output is the recorded array for the model's output name, or nil.
func (s *samples) output(name string) (column, error) {
	if s.open == nil {
		return nil, nil
	}
	return s.open(name)
}

// takeLabels sets the labels from an array of the data or from a separate file.
func (s *samples) takeLabels(name string) error {
	if s.open != nil {
		c, err := s.open(firstNonEmpty(name, "labels"))
		if c != nil || err != nil {
			s.labels = c
			return err
		}
	}
	if name == "" {
		return nil
	}
	c, err := s.labelFile(name)
	if errors.Is(err, fs.ErrNotExist) && s.open != nil {
		return fmt.Errorf("%s: no array or file %q for labels; the arrays are %s", s.path, name, quoteList(s.names))
	}
	s.labels = c
	return err
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// labelFile opens a file of labels.
func (s *samples) labelFile(path string) (column, error) {
	c, err := s.file(path)
	if err != nil {
		return nil, err
	}
	switch head := c.head(16); {
	// Content is certain, and is checked before the name.
	case strings.HasPrefix(string(head), npyMagic):
		return asColumn(parseNPY(c, ""))
	case isIDX(head):
		return asColumn(parseIDX(c))
	case isJSONLines(c.name):
		return parseJSONLines(c)
	}
	return nil, fmt.Errorf("%s: labels must be an .npy, IDX or .jsonl file, or a column of a CSV file", c.name)
}

// openSingle opens a file of one array, and optionally a second file of labels.
func openSingle(paths []string, parse func(*content) (*array, error)) (*samples, error) {
	s := &samples{path: paths[0]}
	if len(paths) > 2 {
		return s, fmt.Errorf("%s: give one file of samples, or a file of samples and one of labels separated by a comma",
			strings.Join(paths, ","))
	}
	c, err := s.file(paths[0])
	if err != nil {
		return s, err
	}
	if s.only, err = asColumn(parse(c)); err != nil || len(paths) == 1 {
		return s, err
	}
	s.labels, err = s.labelFile(paths[1])
	return s, err
}

func (s *samples) close() error {
	var errs []error
	// Entries of an archive are closed before the archive, which was opened first.
	for _, c := range slices.Backward(s.closers) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// filesIn are the names of the files in a folder with these extensions (case-insensitive), and of its folders, both
// sorted. Hidden ones, such as .ipynb_checkpoints, are left out; a link to a folder is a folder.
func filesIn(path string, ends ...string) (files, folders []string, err error) {
	entries, folders, err := visible(path)
	for _, e := range entries {
		if slices.Contains(ends, strings.ToLower(filepath.Ext(e.Name()))) {
			files = append(files, e.Name())
		}
	}
	return files, folders, err
}

// visible are the entries of a folder that are not hidden: those of files and others, and the names of folders.
func visible(path string) (entries []fs.DirEntry, folders []string, err error) {
	all, err := os.ReadDir(path)
	if err != nil {
		return nil, nil, fileError(path, err)
	}
	for _, e := range all {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		folder := e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			st, err := os.Stat(filepath.Join(path, e.Name()))
			folder = err == nil && st.IsDir()
		}
		if folder {
			folders = append(folders, e.Name())
		} else {
			entries = append(entries, e)
		}
	}
	return entries, folders, nil
}
