package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/ir"
)

// isJSONLines reports whether a path names JSON Lines.
func isJSONLines(path string) bool {
	name := strings.TrimSuffix(strings.ToLower(path), ".gz")
	return strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".ndjson")
}

// Limits of labels as JSON Lines: bytes of a line, and of the array of all labels.
const (
	maxLabelLine  = 16 << 20
	maxLabelBytes = 1 << 30
)

// A jsonLabel is the label of a sample: text, or numbers in a number of rows; a scalar has no axis, a list one, and a
// list of lists two.
type jsonLabel struct {
	text    string
	numbers []float64
	axes    int
	rows    int // of two axes
}

// parseJSONLines reads labels, one JSON value in each line: a text, a number, a list of numbers, or a list of lists of
// the same number of numbers. All are of one kind. Shorter lists are filled up with NoLabel. A value may be in an
// object as "label".
func parseJSONLines(c *content) (column, error) {
	lines := bufio.NewScanner(c.reader(0))
	lines.Buffer(nil, maxLabelLine)
	var all []jsonLabel
	var kind jsonLabel // the first label that is no empty list
	bytesHeld := 0
	for row := 1; lines.Scan(); row++ {
		line := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
		if len(line) == 0 {
			continue
		}
		l, err := parseLabel(line)
		if err == nil && len(all) > 0 && !l.like(kind) {
			err = errors.New("a label of another kind than those before it")
		}
		if len(all) == 0 || kind.empty() {
			kind = l
		}
		if bytesHeld += 8*len(l.numbers) + len(l.text); err == nil && bytesHeld > maxLabelBytes {
			err = fmt.Errorf("labels of more than %d GiB", maxLabelBytes>>30)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", c.name, row, err)
		}
		all = append(all, l)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s: a line of more than %d MiB", c.name, maxLabelLine>>20)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", c.name, err)
	case len(all) == 0:
		return nil, fmt.Errorf("%s: no labels", c.name)
	case all[0].numbers == nil:
		return textLabels(c.name, all)
	}
	return numericLabels(c.name, kind.axes, all)
}

// empty reports whether the label is an empty list, of any number of axes.
func (l jsonLabel) empty() bool { return l.axes > 0 && len(l.numbers) == 0 }

// like reports whether two labels may be of the same data.
func (l jsonLabel) like(k jsonLabel) bool {
	return l.axes == k.axes && (l.numbers == nil) == (k.numbers == nil) || l.axes > 0 && k.axes > 0 &&
		(l.empty() || k.empty())
}

// parseLabel parses a line.
func parseLabel(line []byte) (l jsonLabel, err error) {
	var value any
	if err := bounded.JSON(line, &value); err != nil {
		return l, errors.New("not a JSON value")
	}
	if object, ok := value.(map[string]any); ok {
		if value, ok = object["label"]; !ok {
			return l, errors.New(`an object without "label"`)
		}
	}
	l.numbers = []float64{}
	switch value := value.(type) {
	case string:
		l.text, l.numbers = value, nil
		return l, nil
	case []any:
		l.axes = 1
		if _, nested := first(value).([]any); nested {
			l.axes, l.rows = 2, len(value)
		}
		return l, l.addList(value)
	}
	return l, l.addNumber(value)
}

func first(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// addList adds the items of a list, those of its rows if it has two axes.
func (l *jsonLabel) addList(items []any) error {
	width := -1
	for _, item := range items {
		if l.axes == 1 {
			if err := l.addNumber(item); err != nil {
				return err
			}
			continue
		}
		row, ok := item.([]any)
		if !ok || width >= 0 && len(row) != width || len(row) == 0 {
			return errors.New("the lists of a label must have the same number of numbers")
		}
		width = len(row)
		for _, x := range row {
			if err := l.addNumber(x); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *jsonLabel) addNumber(value any) error {
	x, ok := value.(float64)
	if !ok {
		return errors.New("a label is a text, a number, a list of numbers, or a list of lists of numbers")
	}
	l.numbers = append(l.numbers, x)
	return nil
}

// numericLabels are labels of one shape, integers if all are.
func numericLabels(name string, axes int, all []jsonLabel) (column, error) {
	rows, width, whole := 0, 0, true
	for _, l := range all {
		switch {
		case l.axes == 1:
			width = max(width, len(l.numbers))
		case l.rows > 0 && width > 0 && len(l.numbers)/l.rows != width:
			return nil, fmt.Errorf("%s: labels with rows of %d numbers, and of %d", name, width, len(l.numbers)/l.rows)
		case l.rows > 0:
			width = len(l.numbers) / l.rows
		}
		rows = max(rows, l.rows)
		for _, x := range l.numbers {
			whole = whole && x == math.Trunc(x) && math.Abs(x) < 1<<53
		}
	}
	var shape []int64
	switch axes {
	case 1:
		shape = []int64{int64(width)}
	case 2:
		shape = []int64{int64(rows), int64(width)}
	}
	each := elems(shape)
	if each == 0 {
		return nil, fmt.Errorf("%s: all labels are empty", name)
	}
	if each > maxLabelBytes/8/int64(len(all)) {
		return nil, fmt.Errorf("%s: %d labels of up to %d numbers take more than %d GiB", name, len(all), each,
			maxLabelBytes>>30)
	}
	numbers := make([]float64, 0, each*int64(len(all)))
	for _, l := range all {
		numbers = append(numbers, l.numbers...)
		for range each - int64(len(l.numbers)) {
			// The end of a shorter list counts nowhere.
			numbers = append(numbers, NoLabel)
		}
	}
	a := inMemory(name, numbers)
	if whole {
		is := make([]int64, len(numbers))
		for i, x := range numbers {
			is[i] = int64(x)
		}
		a = inMemory(name, is)
	}
	a.n, a.shape, a.stride = int64(len(all)), shape, each*8
	return a, nil
}

// textLabels are texts, stored with zeros up to the length of the longest.
func textLabels(name string, all []jsonLabel) (column, error) {
	size := 1
	for _, l := range all {
		if strings.Contains(l.text, "\x00") {
			return nil, fmt.Errorf("%s: a text with a character 0", name)
		}
		size = max(size, len(l.text))
	}
	if size > maxLabelBytes/len(all) {
		return nil, fmt.Errorf("%s: %d texts of up to %d bytes take more than %d GiB", name, len(all), size,
			maxLabelBytes>>30)
	}
	data := make([]byte, size*len(all))
	for i, l := range all {
		copy(data[i*size:], l.text)
	}
	a := inMemory(name, data)
	a.elem, a.n, a.stride = element{dtype: ir.String, size: int64(size)}, int64(len(all)), int64(size)
	return a, nil
}
