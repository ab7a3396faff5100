package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Arrays saved by NumPy are read with the same values: every type, byte order and memory order.
func TestArraysOfNumPy(t *testing.T) {
	s, err := openNPZ("testdata/numpy.npz", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if len(s.names) != 16*4 {
		t.Errorf("%d arrays", len(s.names))
	}
	for _, name := range s.names {
		c, err := s.open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.random(t.TempDir()); err != nil {
			t.Fatal(err)
		}
		index := []int{2, 3, 0}
		load, err := c.load(index, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := load()
		if err != nil {
			t.Fatal(err)
		}
		sameShape(t, a, 3, 3, 2)
		for i, row := range index {
			for j := range 6 {
				if got, want := text(a, 6*i+j), wantOfNumPy(name, 6*row+j); got != want {
					t.Errorf("%s: sample %d, element %d: %s, want %s", name, row, j, got, want)
				}
			}
		}
	}
}

// text is element i of a.
func text(a *ir.Array, i int) string {
	switch a.DType {
	case ir.String:
		return fmt.Sprintf("%q", a.Text[i])
	case ir.Complex64:
		return fmt.Sprint(complex128(ir.View[complex64](a)[i]))
	case ir.Complex128:
		return fmt.Sprint(ir.View[complex128](a)[i])
	}
	var v [1]float64
	reader[float64](a.DType)(v[:], a, int64(i))
	return fmt.Sprint(v[0])
}

// wantOfNumPy is element k as written by testdata/make.py.
func wantOfNumPy(name string, k int) string {
	switch name[0] {
	case 'b':
		return fmt.Sprint(k % 2)
	case 'c':
		return fmt.Sprint(complex(float64(k), 0))
	case 'U':
		return fmt.Sprintf("%q", strings.TrimPrefix(fmt.Sprintf("%dé", k), "0é"))
	case 'S':
		return fmt.Sprintf("%q", strings.TrimPrefix(fmt.Sprint(k), "0"))
	}
	return fmt.Sprint(k)
}

func TestHeadersOfEveryVersion(t *testing.T) {
	header := `{"shape": (2L, 3L), 'fortran_order': False, 'descr': '<i4'}`
	for version := byte(1); version <= 3; version++ {
		b := append([]byte(npyMagic), version, 0)
		if version == 1 {
			b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
		} else {
			b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
		}
		b = append(append(b, header...), count[int32](2, 3).Data...)
		s := mustOpen(t, file(t, "x.npy", b), inputs(input("x", "int32[n,3]")), nil, Options{})
		if got := ir.View[int32](all(t, s, Order{Size: 2})[0].Inputs["x"]); !slices.Equal(got, []int32{0, 1, 2, 3, 4, 5}) {
			t.Errorf("version %d: %v", version, got)
		}
	}
}

func TestBadNumPyHeaders(t *testing.T) {
	with := func(descr, order, shape string) []byte {
		return rawNPY("{'descr': "+descr+", 'fortran_order': "+order+", 'shape': "+shape+"}", make([]byte, 64))
	}
	for _, tt := range []struct {
		name string
		b    []byte
		want string
	}{
		{"no magic", []byte("PICKLED"), "numpy.save"},
		{"nothing after the magic", []byte(npyMagic), "numpy.save"},
		{"version 9", append([]byte(npyMagic), 9, 0, 0, 0, 0, 0), "version 9"},
		{"a header beyond the file", append([]byte(npyMagic), 1, 0, 0xff, 0xff, '{', '}'), "early"},
		{"a header of 4 GiB", append([]byte(npyMagic), 2, 0, 0xff, 0xff, 0xff, 0xff), "maximum"},
		{"no literal", rawNPY("shape=(1,)", nil), "invalid .npy header"},
		{"an empty one", rawNPY("{}", nil), "invalid .npy header"},
		{"another key", rawNPY("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", nil),
			"invalid .npy header"},
		{"no order", with("'<f4'", "0", "(4,)"), "invalid .npy header"},
		{"a tuple that does not end", rawNPY("{'shape': (1,", nil), "invalid .npy header"},
		{"a shape of words", with("'<f4'", "False", "(a,)"), "invalid .npy header"},
		{"negative", with("'<f4'", "False", "(-1, 4)"), "negative"},
		{"too many elements", with("'<f4'", "False", "(9999999999, 9999999999)"), "too many"},
		{"an integer beyond 64 bits", with("'<f4'", "False", "(99999999999999999999,)"), "invalid .npy header"},
		{"more than the file", with("'<f4'", "False", "(17,)"), "truncated"},
		{"more than the file, transposed", with("'<f4'", "True", "(17, 1)"), "truncated"},
		{"samples without bytes", with("'<f4'", "False", "(99999999999999, 0)"), "empty samples"},
		{"strings without bytes", with("'<U0'", "False", "(4, 99999999999)"), "maximum"},
		{"a sample beyond memory", with("'<f8'", "False", "(0, 999999999999)"), "maximum"},
		{"a scalar", with("'<f4'", "False", "()"), "first axis"},
		{"a pickle", with("'|O'", "False", "(1,)"), "numbers, bools or strings"},
		{"a structure", with("[('a', '<f4')]", "False", "(1,)"), "structured arrays"},
		{"a long double", with("'<f16'", "False", "(1,)"), "<f16"},
		{"a string of 2^62 characters", with("'<U4611686018427387904'", "False", "(1,)"), "unsupported NumPy type"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &content{ReaderAt: bytes.NewReader(tt.b), name: "x.npy", size: int64(len(tt.b))}
			_, err := parseNPY(c, "")
			requireError(t, err, "x.npy", tt.want)
		})
	}
}

// A header in a compressed file is compared with the maximum decompressed size.
func TestHugeHeaderInASmallPackedFile(t *testing.T) {
	b := gzipped(rawNPY("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000, 28)}", make([]byte, 1000)))
	_, err := Open(file(t, "x.npy", b), inputs(input("x", "float[n,28]")), nil, Options{})
	requireError(t, err, "truncated")
}

// A compressed file may be shorter than its header specifies; this is detected on reading.
func TestPackedFileThatEndsEarly(t *testing.T) {
	b := gzipped(rawNPY("{'descr': '|u1', 'fortran_order': False, 'shape': (1000, 4)}", make([]byte, 100)))
	s := mustOpen(t, file(t, "x.npy.gz", b), inputs(input("x", "uint8[n,4]")), nil, Options{})
	for _, o := range []Order{{Size: 10}, {Size: 10, Shuffle: true}} {
		var last error
		for _, err := range s.Batches(t.Context(), o) {
			last = err
		}
		requireError(t, last, "x.npy", "early")
	}
}

func TestInvalidCodePoint(t *testing.T) {
	b := rawNPY("{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}",
		binary.LittleEndian.AppendUint32(nil, math.MaxUint32))
	s := mustOpen(t, file(t, "x.npy", b), inputs(input("x", "string[n]")), nil, Options{})
	for _, err := range s.Batches(t.Context(), Order{}) {
		requireError(t, err, "not a Unicode code point")
	}
}

// No file causes a panic; a file that opens is read or returns an error.
func FuzzNPY(f *testing.F) {
	f.Add(npy(count[float32](2, 3)))
	f.Add(rawNPY("{'descr': '>U2', 'fortran_order': True, 'shape': (2, 2), }", make([]byte, 64)))
	f.Add(gzipped(npy(count[int64](3))))
	if b, err := os.ReadFile("testdata/numpy.npz"); err == nil {
		f.Add(b)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) { readAll(t, dir, "x.npz", b, Input{Name: "x"}) })
}

// readAll opens b as data of the detected format and reads it to its end.
func readAll(t *testing.T, dir, name string, b []byte, in Input) {
	path := dir + "/" + name
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, inputs(in), nil, Options{Limit: 50})
	if err != nil {
		return
	}
	defer s.Close()
	for _, o := range []Order{{Size: 3}, {Size: 2, Shuffle: true}} {
		for b, err := range s.Batches(t.Context(), o) {
			if err != nil {
				break
			}
			_ = b.Inputs[in.Name].Clone()
		}
	}
}
