package report

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// JSON writes r in its JSON form: keys in the order of the fields, two spaces of indentation, a newline at the end. Elements of lists are
// encoded one by one: the form of a million weights has hundreds of megabytes.
func (r *Report) JSON(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	fields, elements := newIndented("  "), newIndented("    ")
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
			err = elements.list(out, field)
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

func (x *indented) list(w *bufio.Writer, v reflect.Value) error {
	separator := "[\n    "
	for i := range v.Len() {
		_, err := w.WriteString(separator)
		separator = ",\n    "
		if err = errors.Join(err, x.write(w, v.Index(i))); err != nil {
			return err
		}
	}
	_, err := w.WriteString("\n  ]")
	return err
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
func (r *Report) digest() (string, error) {
	bare := *r
	bare.Digest, bare.Environment = "", nil
	h := sha256.New()
	if err := bare.JSON(h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
