package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/mcompress/mcompress/internal/bounded"
)

// JSON writes r in its JSON form: keys in the order of the fields, two spaces of indentation, a newline at the end.
func (r *Report) JSON(w io.Writer) error { return r.write(w, &indented, nil) }

// JSONWith is JSON with the fields of the struct that more points to, which are no part of the report.
func (r *Report) JSONWith(w io.Writer, more any) error {
	return r.write(w, &indented, members(reflect.ValueOf(more).Elem()))
}

// A layout is the white space of a JSON form and the order of its members.
type layout struct {
	sorted                    bool   // members in the order of their names, as RFC 8785 requires
	open, comma, colon, close string // of the report
	openList, next, closeList string // of a list in it
	member, element           []jsontext.Options
}

var indented = layout{
	open: "{\n  ", comma: ",\n  ", colon: ": ", close: "\n}\n",
	openList: "[\n    ", next: ",\n    ", closeList: "\n  ]",
	member:  []jsontext.Options{jsontext.WithIndentPrefix("  "), jsontext.WithIndent("  ")},
	element: []jsontext.Options{jsontext.WithIndentPrefix("    "), jsontext.WithIndent("  ")},
}

// write writes r. Elements of lists are encoded one by one: the form of a million weights has hundreds of megabytes.
func (r *Report) write(w io.Writer, l *layout, more []member) error {
	out := bufio.NewWriterSize(w, 1<<16)
	separator := l.open
	for _, m := range slices.Concat(r.members(l.sorted), more) {
		fmt.Fprintf(out, "%s%q%s", separator, m.name, l.colon)
		separator = l.comma
		var err error
		if m.value.Kind() == reflect.Slice && m.value.Len() > 0 {
			err = l.writeList(out, m.value)
		} else {
			value := newValueEncoder(l.member)
			err = value.add(m.value)
			out.Write(value.text)
		}
		if err != nil {
			return err
		}
	}
	_, err := out.WriteString(l.close)
	return errors.Join(err, out.Flush())
}

type member struct {
	name  string
	value reflect.Value
}

// members are the fields of r that its JSON form has.
func (r *Report) members(sorted bool) []member {
	ms := members(reflect.ValueOf(r).Elem())
	if sorted {
		slices.SortFunc(ms, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	}
	return ms
}

// members are the fields of a struct that its JSON form has.
func members(v reflect.Value) (ms []member) {
	for i := range v.NumField() {
		name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		field := v.Field(i)
		empty := field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0
		if name != "-" && (option != "omitempty" || !empty) {
			ms = append(ms, member{name, field})
		}
	}
	return ms
}

// listChunk is the number of elements of a list that one goroutine encodes at a time.
const listChunk = 256

// writeList writes a list of structs. Its elements are encoded in parallel.
func (l *layout) writeList(w *bufio.Writer, v reflect.Value) error {
	chunks := make([]*valueEncoder, runtime.GOMAXPROCS(0))
	for i := range chunks {
		chunks[i] = newValueEncoder(l.element)
	}
	separator := l.openList
	for first := 0; first < v.Len(); {
		var g errgroup.Group
		for _, x := range chunks {
			end := min(v.Len(), first+listChunk)
			elements := v.Slice(first, end)
			first = end
			g.Go(func() error { return x.elements(elements, l.next) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		// In order, whichever goroutine was first: equal reports have equal bytes.
		for _, x := range chunks {
			if len(x.text) > 0 {
				_, err := w.WriteString(separator)
				if _, last := w.Write(x.text); errors.Join(err, last) != nil {
					return errors.Join(err, last)
				}
				separator = l.next
			}
		}
	}
	_, err := w.WriteString(l.closeList)
	return err
}

// A valueEncoder encodes values in the format of its options.
type valueEncoder struct {
	text    []byte
	options []jsontext.Options
	compact bytes.Buffer // a value without indentation
	encoder *json.Encoder
}

func newValueEncoder(options []jsontext.Options) *valueEncoder {
	x := &valueEncoder{options: options}
	x.encoder = json.NewEncoder(&x.compact)
	x.encoder.SetEscapeHTML(false)
	return x
}

// add appends v to the text.
func (x *valueEncoder) add(v reflect.Value) (err error) {
	x.compact.Reset()
	if err := x.encoder.Encode(v.Interface()); err != nil {
		return err
	}
	x.text, err = jsontext.AppendFormat(x.text, x.compact.Bytes(), x.options...)
	return err
}

// elements encodes those of v, with separators between them.
func (x *valueEncoder) elements(v reflect.Value, separator string) error {
	x.text = x.text[:0]
	for i := range v.Len() {
		if i > 0 {
			x.text = append(x.text, separator...)
		}
		if err := x.add(v.Index(i).Addr()); err != nil {
			return err
		}
	}
	return nil
}

// Read reads the JSON form of the same schema version. Unknown fields are ignored.
func Read(rd io.Reader) (*Report, error) {
	r := &Report{}
	if err := bounded.ReadJSON(rd, math.MaxInt64, r); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	if r.SchemaVersion != SchemaVersion {
		return nil, fmt.Errorf("report: schema version %d, want %d", r.SchemaVersion, SchemaVersion)
	}
	// Pages and other formats name the first file of both.
	if len(r.Source.Files) == 0 || len(r.Result.Files) == 0 {
		return nil, errors.New("report: it names no files of the source or of the result")
	}
	return r, nil
}
