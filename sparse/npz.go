package sparse

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// An npz is an archive of NumPy arrays whose elements are streamed.
type npz struct{ z *zip.Writer }

// array adds an array of the given type, as NumPy writes types, and has its elements
// written. Entries carry no time, and are not deflated: equal arrays are equal bytes
// whatever version of Go writes them.
func (n npz) array(name, descr string, shape []int64, write func(io.Writer) error) error {
	w, err := n.z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err != nil {
		return err
	}
	if _, err := w.Write(npyHeader(descr, shape)); err != nil {
		return err
	}
	return write(w)
}

// npyHeader is that of version 1.0 of NumPy's format: the elements after it start at a
// multiple of 64 bytes.
func npyHeader(descr string, shape []int64) []byte {
	var dims strings.Builder
	for _, d := range shape {
		fmt.Fprintf(&dims, "%d,", d)
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims.String())
	const prefix, align = 10, 64
	text += strings.Repeat(" ", align-1-(prefix+len(text))%align) + "\n"
	b := []byte("\x93NUMPY\x01\x00")
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}

// npyType is NumPy's name of dt. It has no 16-bit types that SciPy takes: they are
// written as float32, which holds each of their values.
func npyType(dt ir.DType) string {
	switch dt {
	case ir.Int8:
		return "|i1"
	case ir.Uint8:
		return "|u1"
	case ir.Int32:
		return "<i4"
	case ir.Double:
		return "<f8"
	}
	return "<f4"
}
