package dataset

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
)

// npy encodes a tensor like numpy.save.
func npy(a *ir.Array) []byte {
	types := map[ir.DType]string{ir.Float: "<f4", ir.Double: "<f8", ir.Int64: "<i8", ir.Int32: "<i4", ir.Uint8: "|u1",
		ir.Float16: "<f2", ir.Uint64: "<u8"}
	shape := ""
	for _, n := range a.Shape {
		shape += fmt.Sprintf("%d, ", n)
	}
	return rawNPY(fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", types[a.DType], shape), a.Data)
}

func rawNPY(header string, data []byte) []byte {
	header += "\n"
	b := append([]byte(npyMagic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	return append(append(b, header...), data...)
}

// npz writes a file of these arrays; the entries are compressed unless stored.
func npz(t testing.TB, stored bool, arrays map[string]*ir.Array) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, a := range arrays {
		method := zip.Deflate
		if stored {
			method = zip.Store
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: method})
		if err != nil {
			t.Fatal(err)
		}
		w.Write(npy(a))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return file(t, "data.npz", b.Bytes())
}

func file(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func gzipped(b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(b)
	w.Close()
	return z.Bytes()
}

// openZip reads the files of a zip by name.
func openZip(path string) (map[string][]byte, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	files := map[string][]byte{}
	for _, e := range z.File {
		r, err := e.Open()
		if err != nil {
			return nil, err
		}
		if files[e.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// input is an input whose type is given in a form like "float[batch,3]".
func input(name, typ string) Input {
	elem, rest, ranked := strings.Cut(typ, "[")
	t := &ir.Type{}
	for d := ir.Float; d.Known(); d++ {
		if d.String() == elem {
			t.Elem = d
		}
	}
	if rest, _ = strings.CutSuffix(rest, "]"); ranked {
		t.Shape = []ir.Dim{}
	}
	for _, dim := range strings.FieldsFunc(rest, func(r rune) bool { return r == ',' }) {
		d := ir.Dim{N: -1}
		if _, err := fmt.Sscan(dim, &d.N); err != nil && dim != "?" {
			d = ir.Dim{N: -1, Param: dim}
		}
		t.Shape = append(t.Shape, d)
	}
	return Input{Name: name, Type: t}
}

func scalar(name, elem string) Input {
	in := input(name, elem)
	in.Type.Shape = []ir.Dim{}
	return in
}

func inputs(in ...Input) []Input { return in }

func mustOpen(t testing.TB, data string, in, out []Input, o Options) *Set {
	t.Helper()
	s, err := Open(data, in, out, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// all are the batches of s.
func all(t testing.TB, s *Set, o Order) []*Batch {
	t.Helper()
	var bs []*Batch
	for b, err := range s.Batches(context.Background(), o) {
		if err != nil {
			t.Fatal(err)
		}
		bs = append(bs, b)
	}
	return bs
}

// requireError requires an error of one line that contains all of want.
func requireError(t testing.TB, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not contain %q", err, w)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q is not one line", err)
	}
}

// count is a tensor whose element k is k.
func count[T int32 | int64 | uint8 | float32 | float64](shape ...int64) *ir.Array {
	v := make([]T, elems(shape))
	for i := range v {
		v[i] = T(i)
	}
	return ir.ArrayOf(v, shape...)
}

func sameShape(t testing.TB, a *ir.Array, want ...int64) {
	t.Helper()
	if a == nil || !slices.Equal(a.Shape, want) {
		t.Fatalf("%v, want shape %v", a, want)
	}
}

func sharedFile(t testing.TB, path ...string) string {
	return filepath.Join(append([]string{conform.Shared(t), "fixtures"}, path...)...)
}

// model is the inputs and outputs of one of the shared models.
func model(t testing.TB, name string) (in, out []Input) {
	t.Helper()
	f, err := onnx.Open(sharedFile(t, "models", name, "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return Inputs(f.Model.Graph), Outputs(f.Model.Graph)
}
