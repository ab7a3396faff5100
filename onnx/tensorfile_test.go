package onnx

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

// Every input and output of ONNX's own tests is read, and is of the kind, element type
// and shape that the test's model declares.
func TestValuesOfONNXsTestsAreRead(t *testing.T) {
	for _, name := range []string{"onnx_node_tests.zip", "onnx_backend_other.zip"} {
		files := unzipped(t, filepath.Join(conform.Shared(t), "fixtures", "conformance", name))
		read := 0
		for file, b := range files {
			if path.Ext(file) != ".pb" {
				continue
			}
			m, err := decodeBytes(files[path.Join(path.Dir(path.Dir(file)), "model.onnx")], t.TempDir())
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			if err := readDeclared(m, file, b); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			read++
		}
		if read < 200 {
			t.Errorf("%s: only %d values", name, read)
		}
	}
}

func unzipped(t *testing.T, path string) map[string][]byte {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// readDeclared reads b as the input or output of m by the file's name.
func readDeclared(m *ir.Model, file string, b []byte) error {
	values := m.Graph.Inputs
	if strings.HasPrefix(path.Base(file), "output_") {
		values = m.Graph.Outputs
	}
	var at int
	if _, err := fmt.Sscanf(path.Base(file)[strings.Index(path.Base(file), "_")+1:], "%d.pb", &at); err != nil {
		return err
	}
	v := values[at]
	a, err := readValueAt(bytes.NewReader(b), int64(len(b)), file, KindOf(v))
	if err != nil {
		return err
	}
	switch KindOf(v) {
	case SequenceValue:
		if a.Kind != ir.Sequence {
			return fmt.Errorf("%s for a sequence", a)
		}
	case TensorValue:
		return declared(a, v.Type)
	}
	return nil
}

func declared(a *ir.Array, want *ir.Type) error {
	if a.Kind != ir.Dense || a.DType != want.Elem || want.Shape != nil && len(a.Shape) != len(want.Shape) {
		return fmt.Errorf("%s, but the model has %v", a, want)
	}
	if a.DType == ir.String && int64(len(a.Text)) != a.Elems() || int64(len(a.Data)) != a.Bytes() {
		return fmt.Errorf("%s holds %d bytes and %d strings", a, len(a.Data), len(a.Text))
	}
	for i, d := range want.Shape {
		if d.Known() && d.N != a.Shape[i] {
			return fmt.Errorf("%s, but the model has %v", a, want)
		}
	}
	return nil
}

func decodeValue(m message, kind ValueKind) (*ir.Array, error) {
	return readValueAt(bytes.NewReader(m), int64(len(m)), "x.pb", kind)
}

func TestValueKinds(t *testing.T) {
	one := tensorOf(ir.Float, 1).bytes(tensorRaw, floats(1))
	two := tensorOf(ir.Float).bytes(tensorFloats, floats(2))
	pair := message{}.varint(2, 1).bytes(holdsTensor, one).bytes(holdsTensor, two)
	for _, tt := range []struct {
		name string
		m    message
		kind ValueKind
		want string
	}{
		{"tensor", one, TensorValue, "float[1]"},
		{"sequence", pair, SequenceValue, "seq of 2"},
		{"empty sequence", nil, SequenceValue, "seq of 0"},
		{"optional", message{}.varint(2, 1).bytes(holdsTensor, one), OptionalValue, "float[1]"},
		{"optional sequence", message{}.bytes(holdsSequence, pair), OptionalValue, "seq of 2"},
		{"optional without a value", message{}.varint(2, 0), OptionalValue, "optional"},
		{"map", message{}.varint(mapKeys, 7, 8).bytes(mapValues, pair), MapValue, "map"},
	} {
		a, err := decodeValue(tt.m, tt.kind)
		if err != nil || a.String() != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.name, a, err, tt.want)
		}
	}
}

func TestMapValues(t *testing.T) {
	values := message{}
	for _, f := range []float32{0.25, 0.75} {
		values = values.bytes(holdsTensor, tensorOf(ir.Float).bytes(tensorRaw, floats(f)))
	}
	a, err := decodeValue(message{}.text(mapTextKeys, "ham").text(mapTextKeys, "spam").bytes(mapValues, values), MapValue)
	if err != nil {
		t.Fatal(err)
	}
	if got := ir.View[float32](a.Items[0]); !slices.Equal(a.Keys.Text, []string{"ham", "spam"}) ||
		!slices.Equal(got, []float32{0.25, 0.75}) {
		t.Errorf("keys %q, values %v", a.Keys.Text, got)
	}
}

func TestStringsOfAValue(t *testing.T) {
	long := strings.Repeat("é", maxString)
	a, err := decodeValue(tensorOf(ir.String, 3).text(tensorStrings, "").text(tensorStrings, "a b").text(tensorStrings,
		long), TensorValue)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.Text, []string{"", "a b", long}) {
		t.Errorf("%d strings", len(a.Text))
	}
}

func TestBadValuesAreRefused(t *testing.T) {
	deep := message{}
	for range 200 {
		deep = message{}.bytes(holdsSequence, deep)
	}
	tests := []struct {
		name string
		m    message
		kind ValueKind
		want string
	}{
		{"external data", externalOf(1, "location", "w.bin"), TensorValue, "external data"},
		{"no bytes", nil, TensorValue, "not known"},
		{"too few strings", tensorOf(ir.String, math.MaxInt32).text(tensorStrings, "a"), TensorValue, "1 items"},
		{"strings that are numbers", tensorOf(ir.String, 1).varint(tensorStrings, 1), TensorValue, "no string"},
		{"two values of an optional", message{}.bytes(holdsTensor, tensorOf(ir.Float)).bytes(holdsTensor, tensorOf(ir.Float)),
			OptionalValue, "no data"},
		{"more keys than values", message{}.varint(mapKeys, 1), MapValue, "1 keys"},
		{"a sparse item", message{}.bytes(holdsSparse, nil), SequenceValue, "sparse"},
		{"an item that is a number", message{}.varint(holdsTensor, 1), SequenceValue, "wire type"},
		{"deep sequences", deep, SequenceValue, "nested"},
	}
	for _, tt := range badTensors {
		tests = append(tests, struct {
			name string
			m    message
			kind ValueKind
			want string
		}{tt.name, tt.tensor, TensorValue, ""})
	}
	for _, tt := range tests {
		boundedMemory(t, int64(len(tt.m)), func() {
			_, err := decodeValue(tt.m, tt.kind)
			if err == nil {
				t.Errorf("%s: it was taken", tt.name)
				return
			}
			formatError(t, err, "x.pb", tt.want)
		})
	}
}

// Whatever the file: no panic, and what is refused is a FormatError.
func FuzzDecodeValue(f *testing.F) {
	for _, tt := range badTensors {
		f.Add([]byte(tt.tensor), uint8(0))
	}
	one := tensorOf(ir.Int4, 3).varint(tensorInt32s, 1, 2)
	seq := message{}.bytes(holdsTensor, one).bytes(holdsTensor, tensorOf(ir.String, 1).text(tensorStrings, "a"))
	f.Add([]byte(one), uint8(0))
	f.Add([]byte(seq), uint8(1))
	f.Add([]byte(message{}.varint(mapKeys, 1).bytes(mapValues,
		message{}.bytes(holdsTensor, tensorOf(ir.Bool).varint(tensorInt32s, 1)))), uint8(2))
	f.Add([]byte(message{}.bytes(holdsSequence, seq)), uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, kind uint8) {
		a, err := decodeValue(b, ValueKind(kind%4))
		var fe *FormatError
		if err != nil && !errors.As(err, &fe) {
			t.Fatalf("%T is no FormatError: %v", err, err)
		}
		if err == nil {
			_ = a.Clone()
		}
	})
}
