package dataset

import (
	"archive/zip"
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/ir"
)

// The rows of matrices that SciPy writes are those that it reads: in order, shuffled, and of batches of any size.
func TestSparseMatricesOfSciPy(t *testing.T) {
	w, folder := conform.Start(t), t.TempDir()
	names, err := w.SparseFiles(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := filepath.Join(folder, name+".npz")
		want, err := w.Sparse(path)
		if err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, path, inputs(input("x", fmt.Sprintf("%s[n,%d]", sparseTypes[want.Dense.DType],
			want.Dense.Shape[1]))), nil, Options{})
		row := len(want.Dense.Data) / want.Dense.Shape[0]
		for _, o := range []Order{{Size: 5}, {Size: 1000}, {Size: 7, Shuffle: true, Seed: 3}} {
			order, at := Shuffled(s.Len(), 3), 0
			for _, b := range all(t, s, o) {
				for i := range b.N {
					k := at
					if o.Shuffle {
						k = order[at]
					}
					if !bytes.Equal(b.Inputs["x"].Data[i*row:][:row], want.Dense.Data[k*row:][:row]) {
						t.Fatalf("%s, %+v: row %d differs", name, o, k)
					}
					at++
				}
			}
			if at != want.Dense.Shape[0] {
				t.Errorf("%s: %d rows of %d", name, at, want.Dense.Shape[0])
			}
		}
	}
}

var sparseTypes = map[string]string{"float32": "float", "float64": "double", "int8": "int8", "uint16": "uint16",
	"int64": "int64", "bool": "bool"}

// sparseFile is an .npz file with the format as a scalar, as SciPy writes it; "" for none.
func sparseFile(t *testing.T, format string, arrays map[string]*ir.Array) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	put := func(name string, data []byte) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		w.Write(data)
	}
	for name, a := range arrays {
		put(name, npy(a))
	}
	if format != "" {
		put("format", rawNPY(fmt.Sprintf("{'descr': '|S%d', 'fortran_order': False, 'shape': (), }", len(format)),
			[]byte(format)))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return file(t, "matrix.npz", b.Bytes())
}

func list32(x ...int32) *ir.Array  { return ir.ArrayOf(x, int64(len(x))) }
func list64(x ...int64) *ir.Array  { return ir.ArrayOf(x, int64(len(x))) }
func listF(x ...float32) *ir.Array { return ir.ArrayOf(x, int64(len(x))) }

// csr is a matrix of 3 × 4 with three entries, with changes.
func csr(change ...any) map[string]*ir.Array {
	m := map[string]*ir.Array{"shape": list64(3, 4), "indptr": list32(0, 2, 2, 3), "indices": list32(1, 3, 0),
		"data": listF(5, 6, 7)}
	for i := 0; i < len(change); i += 2 {
		m[change[i].(string)] = change[i+1].(*ir.Array)
	}
	return m
}

// A file of numpy.savez with the arrays of a matrix is in CSR form; other arrays are labels.
func TestSparseWithLabels(t *testing.T) {
	in := inputs(input("x", "float[n,4]"))
	labels := file(t, "l.npy", npy(list64(2, 0, 1)))
	for path, o := range map[string]Options{
		sparseFile(t, "", csr("labels", list64(2, 0, 1))): {},
		sparseFile(t, "csr", csr("y", list64(2, 0, 1))):   {Labels: "y"},
		sparseFile(t, "csr", csr()):                       {Labels: labels, Scale: 1},
	} {
		s := mustOpen(t, path, in, nil, o)
		b := all(t, s, Order{Size: 3, Index: []int{2, 0, 1}})[0]
		if got := ir.View[float32](b.Inputs["x"]); fmt.Sprint(got) != "[7 0 0 0 0 5 0 6 0 0 0 0]" ||
			fmt.Sprint(b.Classes()) != "[1 2 0]" {
			t.Errorf("got %v with labels %v", got, b.Classes())
		}
	}
	dense := mustOpen(t, sparseFile(t, "", map[string]*ir.Array{"shape": listF(1), "indptr": listF(2), "indices": listF(3),
		"data": listF(4)}),
		inputs(input("indptr", "float[n]"), input("data", "float[n]")), nil, Options{})
	if got := ir.View[float32](all(t, dense, Order{})[0].Inputs["indptr"])[0]; got != 2 {
		t.Errorf("an input that is called indptr is %v, want 2", got)
	}
}

// Malformed matrices are errors that name the problem, without memory in proportion to what their headers claim.
func TestMalformedSparseMatrices(t *testing.T) {
	matrix := func(arrays ...any) map[string]*ir.Array {
		m := csr(arrays...)
		return m
	}
	coo := func(change ...any) map[string]*ir.Array {
		m := map[string]*ir.Array{"shape": list64(3, 4), "row": list32(0, 2), "col": list32(1, 3), "data": listF(5, 6)}
		for i := 0; i < len(change); i += 2 {
			m[change[i].(string)] = change[i+1].(*ir.Array)
		}
		return m
	}
	square := ir.NewArray(ir.Float, 2, 2)
	for _, c := range []struct {
		format, want string
		arrays       map[string]*ir.Array
	}{
		{"csr", "column 4 is not one of 4", matrix("indices", list32(1, 4, 0))},
		{"csr", "sample 2: column -1 is not", matrix("indices", list32(1, 3, -1))},
		{"csr", "indptr 2 is 1: the values must increase", matrix("indptr", list32(0, 2, 1, 3))},
		{"csr", "indptr 0 is 1", matrix("indptr", list32(1, 2, 2, 3))},
		{"csr", "indptr 1 is -1", matrix("indptr", list32(0, -1, 2, 3))},
		{"csr", "indptr 3 is 9", matrix("indptr", list32(0, 2, 2, 9))},
		{"csr", "indptr has 3 elements, want 4", matrix("indptr", list32(0, 2, 3))},
		{"csr", "indices has 2 elements, want 3", matrix("indices", list32(1, 3))},
		{"csr", `"indices" is not a list of integers`, matrix("indices", listF(1, 3, 0))},
		{"csr", "data has 2 axes, want 1", matrix("data", square, "indices", list32(1, 2, 3, 0))},
		{"csr", "it has 3 axes", matrix("shape", list64(3, 4, 5))},
		{"csr", "invalid shape [-3 4]", matrix("shape", list64(-3, 4))},
		{"csr", "invalid shape", matrix("shape", list64(3, 1<<60))},
		{"csr", "invalid shape", matrix("shape", list64(3, 1<<29))},
		{"csr", "indptr has 4 elements, want 1152921504606846977", matrix("shape", list64(1<<60, 4))},
		{"csc", "indptr has 4 elements, want 5", matrix()},
		{"csc", "element (3, 0) is outside of 3×3", matrix("shape", list64(3, 3), "indices", list32(3, 1, 0))},
		{"bsr", "data has 1 axes, want 3", matrix()},
		{"bsr", "blocks of 2×2 do not divide 3×4", matrix("data", ir.NewArray(ir.Float, 3, 2, 2))},
		{"bsr", "block column 3 is not one of 2", matrix("data", ir.NewArray(ir.Float, 3, 1, 2))},
		{"bsr", "blocks of 0×1", matrix("data", ir.NewArray(ir.Float, 3, 0, 1))},
		{"coo", `array "row" is missing`, matrix()},
		{"coo", "element (0, 4) is outside", coo("col", list32(4, 3))},
		{"coo", "element (-1, 1) is outside", coo("row", list32(-1, 2))},
		{"coo", "col has 1 elements, want 2", coo("col", list32(1))},
		{"coo", "too many to be converted", coo("shape", list64(1<<40, 4))},
		{"dia", "offsets has 1 elements, want 2", map[string]*ir.Array{"shape": list64(3, 4), "offsets": list32(0),
			"data": square}},
		{"lil", `format "lil": unknown format; csr, csc`, matrix()},
		{"csr", "values of float16 are not supported", matrix("data", ir.NewArray(ir.Float16, 3))},
	} {
		s, err := Open(sparseFile(t, c.format, c.arrays), inputs(input("x", "float[n,4]")), nil, Options{})
		if err == nil {
			for _, err = range s.Batches(t.Context(), Order{Size: 2}) {
			}
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.format, err, c.want)
		}
	}
}

// CSR stays in the file: memory is that of dense batches. Other formats are held in memory, which is planned.
func TestSparseMemory(t *testing.T) {
	const n, columns, batch = 50, 3000, 4
	starts, indices := make([]int32, n+1), make([]int32, 3*n)
	for i := range n {
		starts[i+1] = int32(3 * (i + 1))
		indices[3*i], indices[3*i+1] = int32(i), int32(i+1)
	}
	arrays := map[string]*ir.Array{"shape": list64(n, columns), "indptr": list32(starts...), "indices": list32(indices...),
		"data": ir.NewArray(ir.Float, 3*n)}
	in := inputs(input("x", fmt.Sprintf("float[n,%d]", columns)))
	dense, buffers := int64(batch*columns*4), int64(4*8*sparseBlock)
	s := mustOpen(t, sparseFile(t, "csr", arrays), in, nil, Options{Prefetch: ptr(1)})
	if got := held(s, batch, 1); got != 2*(dense+buffers) {
		t.Errorf("%d bytes are planned, want %d", got, 2*(dense+buffers))
	}
	arrays["row"], arrays["col"] = list32(make([]int32, 3*n)...), arrays["indices"]
	delete(arrays, "indptr")
	delete(arrays, "indices")
	s = mustOpen(t, sparseFile(t, "coo", arrays), in, nil, Options{Prefetch: ptr(1)})
	if got, want := held(s, batch, 1), 2*(dense+buffers)+3*n*(8+4)+8*(n+1); got != want {
		t.Errorf("%d bytes are planned, want %d", got, want)
	}
}

// FuzzSparse reads files of arbitrary arrays: no panic, no more memory than the file justifies.
func FuzzSparse(f *testing.F) {
	f.Add("csr", []byte{0, 2, 2, 3}, []byte{1, 3, 0}, []byte{5, 6, 7}, int64(3), int64(4))
	f.Add("bsr", []byte{0, 1}, []byte{1}, []byte{5, 6, 7}, int64(1), int64(3))
	f.Add("dia", []byte{0, 1}, []byte{1}, []byte{5, 6}, int64(7), int64(3))
	f.Fuzz(func(t *testing.T, format string, starts, indices, data []byte, rows, columns int64) {
		if len(format) == 0 || len(format) > 9 {
			return
		}
		of := func(b []byte) *ir.Array { return ir.ArrayOf(b, int64(len(b))) }
		arrays := map[string]*ir.Array{"shape": list64(rows, columns), "data": of(data), "indptr": of(starts),
			"indices": of(indices), "row": of(starts), "col": of(indices), "offsets": of(indices)}
		s, err := Open(sparseFile(t, format, arrays), inputs(input("x", "float[n,m]")), nil, Options{})
		if err != nil {
			return
		}
		defer s.Close()
		for b, err := range s.Batches(t.Context(), Order{Size: 3}) {
			if err != nil || b.First > 100 {
				return
			}
		}
	})
}
