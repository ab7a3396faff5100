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
			if text := x.text.Bytes(); len(text) > 0 {
				_, err := w.WriteString(separator)
				if _, last := w.Write(text); errors.Join(err, last) != nil {
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
	text    bytes.Buffer
	encoder *json.Encoder
}

func newIndented(prefix string) *indented {
	x := &indented{}
	x.encoder = json.NewEncoder(&x.text)
	x.encoder.SetEscapeHTML(false)
	x.encoder.SetIndent(prefix, "  ")
	return x
}

func (x *indented) write(w *bufio.Writer, v reflect.Value) error {
	x.text.Reset()
	if err := x.encoder.Encode(v.Interface()); err != nil {
		return err
	}
	_, err := w.Write(bytes.TrimSuffix(x.text.Bytes(), []byte("\n")))
	return err
}

// elements encodes those of v, with separators between them.
func (x *indented) elements(v reflect.Value) error {
	x.text.Reset()
	for i := range v.Len() {
		if i > 0 {
			x.text.WriteString(elementSeparator)
		}
		if err := x.encoder.Encode(v.Index(i).Addr().Interface()); err != nil {
			return err
		}
		x.text.Truncate(x.text.Len() - len("\n"))
	}
	return nil
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
