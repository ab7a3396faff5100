package sparse

import (
	"archive/zip"
	"io"

	"github.com/mcompress/mcompress/internal/dataset"
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
	if _, err := w.Write(dataset.NPYHeader(descr, shape)); err != nil {
		return err
	}
	return write(w)
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
