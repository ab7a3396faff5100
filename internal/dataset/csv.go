package dataset

import (
	"bufio"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/mcompress/mcompress/ir"
)

// openCSV reads a CSV file of numbers once, into a temporary file of float64 for random access to rows. A first row
// that is not all numbers is the header. Labels may be words: the names of classes.
func openCSV(path string, o Options) (*samples, error) {
	s := &samples{path: path}
	c, err := openFile(path)
	if err != nil {
		return s, err
	}
	defer c.Close()
	t := &csvTable{path: path, options: o, seen: map[string]int64{}, bytes: &s.read}
	if err := t.readRows(c); err != nil {
		if t.spool != nil {
			s.closers = append(s.closers, t.spool)
		}
		return s, err
	}
	s.closers = append(s.closers, t.spool)
	if s.labels, s.classes, err = t.labels(); err != nil {
		return s, err
	}
	s.only = t.columns(0, int64(len(t.features)))
	if t.header != nil {
		s.byColumn(t)
	}
	return s, nil
}

// byColumn makes each column an array named after it, for a model of several inputs.
func (s *samples) byColumn(t *csvTable) {
	for _, at := range t.features {
		s.names = append(s.names, t.header[at])
	}
	s.open = func(name string) (column, error) {
		at := slices.Index(s.names, name)
		if at < 0 {
			return nil, nil
		}
		return t.columns(int64(at), 1), nil
	}
}

// A csvTable copies a CSV file to a spool.
type csvTable struct {
	path     string
	options  Options
	header   []string
	features []int // columns of the samples
	label    int   // column of the labels; -1 for none
	row      int   // number of the last row read, from 1
	n        int64
	spool    *spool
	out      *bufio.Writer
	bytes    *atomic.Int64 // read from the spool
	numbers  []float64     // numeric labels
	words    []int64       // other labels: their indices in seen
	seen     map[string]int64
}

// maxRecord bounds the size of a row; with an unclosed quote it would be the whole file.
const maxRecord = 16 << 20

func (t *csvTable) readRows(c *content) error {
	off := int64(0)
	// Spreadsheets write a byte order mark, which would be a part of the first name.
	if mark := "\ufeff"; string(c.head(len(mark))) == mark {
		off = int64(len(mark))
	}
	limited := &allowance{r: c.reader(off), left: maxRecord}
	r := csv.NewReader(limited)
	r.Comma, r.ReuseRecord = t.comma(c.head(4096)), true
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.path, err)
		}
		// The allowance is that of one row.
		limited.left = maxRecord
		if t.row++; t.row == 1 {
			if err := t.readFirstRow(record); err != nil {
				return err
			}
			if t.header != nil {
				continue
			}
		}
		if err := t.addRow(record); err != nil {
			return err
		}
	}
	if t.n == 0 {
		return fmt.Errorf("%s: no samples", t.path)
	}
	return t.out.Flush()
}

// comma is the field separator: a tab in .tsv, else a semicolon if the first line has one and no comma.
func (t *csvTable) comma(head []byte) rune {
	first, _, _ := strings.Cut(string(head), "\n")
	name := strings.TrimSuffix(strings.ToLower(t.path), ".gz")
	switch {
	case filepath.Ext(name) == ".tsv":
		return '\t'
	case strings.Contains(first, ";") && !strings.Contains(first, ","):
		return ';'
	}
	return ','
}

// readFirstRow determines the columns of features and labels from the first row.
func (t *csvTable) readFirstRow(record []string) (err error) {
	// The reader reuses the record for the next row.
	first := slices.Clone(record)
	t.label = slices.Index(first, "labels")
	if t.options.Labels != "" {
		if t.label, err = t.find(first, t.options.Labels); err != nil {
			return err
		}
	}
	for _, name := range t.options.Columns {
		at, err := t.find(first, name)
		if err != nil {
			return err
		}
		t.features = append(t.features, at)
	}
	for at := range first {
		if len(t.options.Columns) == 0 && at != t.label {
			t.features = append(t.features, at)
		}
	}
	if len(t.features) == 0 {
		return fmt.Errorf("%s: no columns except the labels", t.path)
	}
	named := t.label >= 0 && first[t.label] == firstNonEmpty(t.options.Labels, "labels")
	if named || slices.ContainsFunc(t.features, func(at int) bool { return !isNumber(first[at]) }) {
		t.header = first
	}
	if t.spool, err = newSpool(t.options.TempDir); err != nil {
		return err
	}
	t.out = bufio.NewWriterSize(t.spool, ir.CopyBuffer)
	return nil
}

// find returns the column with that number (from 0), or else with that name.
func (t *csvTable) find(first []string, name string) (int, error) {
	at, err := strconv.Atoi(name)
	if err != nil {
		at = slices.Index(first, name)
	}
	if at < 0 || at >= len(first) {
		return 0, fmt.Errorf("%s: no column %q; its first row is %s", t.path, name, quoteList(first))
	}
	return at, nil
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return err == nil
}

// addRow writes the features of one row to the spool and stores its label.
func (t *csvTable) addRow(record []string) error {
	var b [8]byte
	for _, at := range t.features {
		f, err := exact(record[at])
		if err != nil {
			return fmt.Errorf("%s: row %d, column %d: %w", t.path, t.row, at, err)
		}
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(f))
		if _, err := t.out.Write(b[:]); err != nil {
			return err
		}
	}
	t.n++
	if t.label < 0 {
		return nil
	}
	return t.addLabel(strings.TrimSpace(record[t.label]))
}

// addLabel stores the label of a row. All labels are numbers, or all are words.
func (t *csvTable) addLabel(word string) error {
	f, err := exact(word)
	switch {
	case word == "" || err == nil && math.IsNaN(f):
		return fmt.Errorf("%s: row %d: the label is missing; remove the row, or give it the label %d among numbers, "+
			"which counts nowhere", t.path, t.row, NoLabel)
	case err == nil && t.words != nil:
		return fmt.Errorf("%s: row %d: label %q is a number, but earlier labels are words", t.path, t.row, word)
	case err != nil && t.numbers != nil:
		return fmt.Errorf("%s: row %d: label %q is not a number, but earlier labels are numbers", t.path, t.row, word)
	case err == nil:
		t.numbers = append(t.numbers, f)
		return nil
	}
	at, ok := t.seen[word]
	if !ok {
		at = int64(len(t.seen))
		// The word is a part of the text of the whole row, which it would keep in memory.
		t.seen[strings.Clone(word)] = at
	}
	t.words = append(t.words, at)
	return nil
}

// exact parses a number; an integer that float64 cannot represent is an error.
func exact(s string) (float64, error) {
	s = strings.TrimSpace(s)
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number; choose other columns with --columns, or the column of labels with --labels",
			s)
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil && (i > 1<<53 || i < -1<<53) {
		return 0, fmt.Errorf("%s is not exact in float64; use an .npz file", s)
	}
	return f, nil
}

// columns are n features, starting with at, as an array in the spool.
func (t *csvTable) columns(at, n int64) *array {
	stride := 8 * int64(len(t.features))
	c := &content{ReaderAt: t.spool, name: t.path, size: t.n * stride, read: t.bytes}
	a := &array{from: c, elem: element{dtype: ir.Double, size: 8}, n: t.n, off: 8 * at, stride: stride}
	if a.shape = []int64{n}; n == 1 && len(t.features) > 1 {
		a.name, a.shape = t.header[t.features[at]], nil
	}
	return a
}

// labels are the labels of all rows, words as the numbers of their classes.
func (t *csvTable) labels() (column, []string, error) {
	switch {
	case t.words != nil:
		return t.classes()
	case t.numbers == nil:
		return nil, nil, nil
	}
	labels := make([]int64, len(t.numbers))
	for i, f := range t.numbers {
		if labels[i] = int64(f); float64(labels[i]) != f {
			return inMemory(t.path, t.numbers), nil, nil
		}
	}
	return inMemory(t.path, labels), nil, nil
}

// classes are the labels that are words.
func (t *csvTable) classes() (column, []string, error) {
	names := slices.Sorted(maps.Keys(t.seen))
	numbers, classes, err := t.options.numberClasses(t.path, names)
	if err != nil {
		return nil, nil, err
	}
	number := make([]int64, len(names))
	for i, w := range names {
		number[t.seen[w]] = numbers[i]
	}
	for i, at := range t.words {
		t.words[i] = number[at]
	}
	return inMemory(t.path, t.words), classes, nil
}

// An allowance is a reader that returns an error after left bytes.
type allowance struct {
	r    io.Reader
	left int
}

// Read implements io.Reader.
func (a *allowance) Read(b []byte) (int, error) {
	if a.left <= 0 {
		return 0, fmt.Errorf("a row has more than %d bytes; unclosed quote?", maxRecord)
	}
	n, err := a.r.Read(b[:min(len(b), a.left)])
	a.left -= n
	return n, err
}
