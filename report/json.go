package report

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/mcompress/mcompress/ir"
)

// JSON writes r in its JSON form: keys in the order of the fields, two spaces of indentation, a newline at the end. Elements of lists are
// encoded one by one: the form of a million weights has hundreds of megabytes.
func (r *Report) JSON(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	fields := newIndented("  ")
	v, separator := reflect.ValueOf(r).Elem(), "{\n"
	for i := range v.NumField() {
		name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		field := v.Field(i)
		isList := field.Kind() == reflect.Slice && field.Len() > 0
		if option == "omitempty" && (field.IsZero() || field.Kind() == reflect.Slice && !isList) {
			continue
		}
		fmt.Fprintf(out, "%s  %q: ", separator, name)
		separator = ",\n"
		var err error
		if isList {
			err = writeList(out, field)
		} else {
			err = fields.write(out, field)
		}
		if err != nil {
			return err
		}
	}
	_, err := out.WriteString("\n}\n")
	return errors.Join(err, out.Flush())
}

// listChunk is the number of elements of a list that one goroutine encodes at a time.
const listChunk = 256

// writeList writes a list of structs. Its elements are encoded in parallel.
func writeList(w *bufio.Writer, v reflect.Value) error {
	chunks := make([]*indented, runtime.GOMAXPROCS(0))
	for i := range chunks {
		chunks[i] = newIndented("    ")
	}
	separator := "[\n    "
	for first := 0; first < v.Len(); {
		var g errgroup.Group
		for _, x := range chunks {
			end := min(v.Len(), first+listChunk)
			elements := v.Slice(first, end)
			first = end
			g.Go(func() error { return x.elements(elements) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for _, x := range chunks {
			if len(x.text) > 0 {
				_, err := w.WriteString(separator)
				if _, last := w.Write(x.text); errors.Join(err, last) != nil {
					return errors.Join(err, last)
				}
				separator = elementSeparator
			}
		}
	}
	_, err := w.WriteString("\n  ]")
	return err
}

const elementSeparator = ",\n    "

// An indented encodes values below others.
type indented struct {
	text    []byte
	prefix  string       // of the lines of a value
	compact bytes.Buffer // a value without indentation
	encoder *json.Encoder
}

func newIndented(prefix string) *indented {
	x := &indented{prefix: prefix}
	x.encoder = json.NewEncoder(&x.compact)
	x.encoder.SetEscapeHTML(false)
	return x
}

func (x *indented) write(w *bufio.Writer, v reflect.Value) error {
	x.text = x.text[:0]
	if err := x.add(v); err != nil {
		return err
	}
	_, err := w.Write(x.text)
	return err
}

// add appends v to the text.
func (x *indented) add(v reflect.Value) error {
	x.compact.Reset()
	if err := x.encoder.Encode(v.Interface()); err != nil {
		return err
	}
	x.text = appendIndented(x.text, bytes.TrimSuffix(x.compact.Bytes(), []byte("\n")), x.prefix)
	return nil
}

// elements encodes those of v, with separators between them.
func (x *indented) elements(v reflect.Value) error {
	x.text = x.text[:0]
	for i := range v.Len() {
		if i > 0 {
			x.text = append(x.text, elementSeparator...)
		}
		if err := x.add(v.Index(i).Addr()); err != nil {
			return err
		}
	}
	return nil
}

// appendIndented appends compact, which is valid JSON without spaces between tokens, as json.Indent does with this prefix and two
// spaces. That function also checks the syntax, which takes twice the time of encoding.
func appendIndented(dst, compact []byte, prefix string) []byte {
	depth := 0
	newline := func() {
		dst = append(append(dst, '\n'), prefix...)
		for range depth {
			dst = append(dst, "  "...)
		}
	}
	for i := 0; i < len(compact); i++ {
		switch c := compact[i]; c {
		case '"':
			end := i + 1
			for ; compact[end] != '"'; end++ {
				if compact[end] == '\\' {
					end++
				}
			}
			dst = append(dst, compact[i:end+1]...)
			i = end
		case '{', '[':
			dst = append(dst, c)
			if next := compact[i+1]; next == '}' || next == ']' {
				dst = append(dst, next)
				i++
				continue
			}
			depth++
			newline()
		case '}', ']':
			depth--
			newline()
			dst = append(dst, c)
		case ',':
			dst = append(dst, c)
			newline()
		case ':':
			dst = append(dst, ": "...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// Read reads the JSON form of the same schema version. Unknown fields are ignored.
func Read(rd io.Reader) (*Report, error) {
	r := &Report{}
	if err := json.NewDecoder(rd).Decode(r); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	if r.SchemaVersion != SchemaVersion {
		return nil, fmt.Errorf("report: schema version %d, want %d", r.SchemaVersion, SchemaVersion)
	}
	return r, nil
}

// digest is the SHA-256 of r without its environment.
func (r *Report) digest(ctx context.Context) (string, error) {
	bare := *r
	bare.Digest, bare.Environment = "", nil
	h := sha256.New()
	if err := bare.JSON(ir.ContextWriter(ctx, h)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
