//go:build !noort

package ort_test

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// numpyTypes are NumPy's names of types in files.
var numpyTypes = map[ir.DType]string{
	ir.Float: "<f4", ir.Double: "<f8", ir.Float16: "<f2", ir.Bool: "|b1",
	ir.Int8: "|i1", ir.Int16: "<i2", ir.Int32: "<i4", ir.Int64: "<i8",
	ir.Uint8: "|u1", ir.Uint16: "<u2", ir.Uint32: "<u4", ir.Uint64: "<u8",
}

// writeNPZ writes tensors like NumPy's savez, the input format of the worker.
func writeNPZ(t *testing.T, path string, arrays map[string]*ir.Array) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for name, a := range arrays {
		w, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(npy(a)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

func npy(a *ir.Array) []byte {
	descr, data := numpyTypes[a.DType], a.Data
	if a.DType == ir.String {
		descr, data = unicode(a.Text)
	}
	shape := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(a.Shape)), ","), "[]")
	if len(a.Shape) == 1 {
		shape += ","
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n", descr, shape)
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	return append(append(b, header...), data...)
}

// unicode is text in NumPy's type U, four bytes per character.
func unicode(text []string) (descr string, data []byte) {
	width := 1
	for _, s := range text {
		width = max(width, len([]rune(s)))
	}
	for _, s := range text {
		for _, r := range s + strings.Repeat("\x00", width-len([]rune(s))) {
			data = binary.LittleEndian.AppendUint32(data, uint32(r))
		}
	}
	return fmt.Sprintf("<U%d", width), data
}
