package metric

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/ir"
)

// An archive is an .npz file whose arrays grow run by run: their elements are in one file each until finish.
type archive struct {
	path   string // without its extension
	free   *int64 // bytes that may be written
	arrays map[string]*arrayFile
}

// A arrayFile array is the concatenation of runs along the first axis.
type arrayFile struct {
	dtype  ir.DType
	shapes [][]int64 // of the runs
	file   *os.File
	text   []string // of strings, instead of the file
}

// numpyType is NumPy's name of a type, empty for types that become float32.
func numpyType(dt ir.DType) string {
	return map[ir.DType]string{
		ir.Bool: "|b1", ir.Int8: "|i1", ir.Uint8: "|u1", ir.Int16: "<i2", ir.Uint16: "<u2", ir.Int32: "<i4", ir.Uint32: "<u4",
		ir.Int64: "<i8", ir.Uint64: "<u8",
		ir.Float16: "<f2", ir.Float: "<f4", ir.Double: "<f8",
	}[dt]
}

// add appends the tensors of n samples.
func (a *archive) add(arrays map[string]*ir.Array, n int) error {
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		x := arrays[name]
		switch {
		case x == nil:
			continue
		case x.Kind != ir.Dense || x.DType != ir.String && !readable(x):
			return inapplicable("%q is %s; it needs tensors of numbers or strings", name, x)
		}
		if err := a.append(name, x, n); err != nil {
			return err
		}
	}
	return nil
}

func (a *archive) append(name string, x *ir.Array, n int) error {
	if x.DType != ir.String && numpyType(x.DType) == "" {
		// NumPy has no such type, as bfloat16: float32 has all its numbers.
		short := make([]float32, x.Elems())
		for i, v := range values(x) {
			short[i] = float32(v)
		}
		x = ir.ArrayOf(short, x.Shape...)
	}
	bytes := int64(len(x.Data))
	for _, t := range x.Text {
		bytes += int64(stringBytes + 4*len(t))
	}
	if *a.free -= 2 * bytes; *a.free < 0 { // in its own file, and then in the archive
		return inapplicable("outputs and inputs take more than %d GiB; use fewer samples (--limit)", maxFiles>>30)
	}
	g, err := a.array(name, x.DType)
	if err != nil {
		return err
	}
	shape := x.Shape
	if len(shape) == 0 || shape[0] != int64(n) {
		shape = append([]int64{1}, shape...) // one sample without its axis
	}
	g.shapes = append(g.shapes, shape)
	g.text = append(g.text, x.Text...)
	_, err = g.file.Write(x.Data)
	return err
}

// stringBytes is the memory of a string besides its characters.
const stringBytes = 16

// array is that of the name, which may be a new one.
func (a *archive) array(name string, dtype ir.DType) (*arrayFile, error) {
	g := a.arrays[name]
	switch {
	case g == nil:
		f, err := os.CreateTemp(filepath.Dir(a.path), "array")
		if err != nil {
			return nil, err
		}
		g = &arrayFile{dtype: dtype, file: f}
		if a.arrays == nil {
			a.arrays = map[string]*arrayFile{}
		}
		a.arrays[name] = g
	case g.dtype != dtype:
		return nil, inapplicable("%q is %s in one run and %s in another one", name, g.dtype, dtype)
	}
	return g, nil
}

// finish writes the archive and returns its path.
func (a *archive) finish() (string, error) {
	path := a.path + ".npz"
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(a.write(f), f.Close())
}

// write writes the archive to w.
func (a *archive) write(w io.Writer) (err error) {
	z := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(a.arrays)) {
		if err = a.arrays[name].write(z, name); err != nil {
			break
		}
	}
	return errors.Join(err, z.Close())
}

// write writes one array, or one of each run if they differ in other axes than the first.
func (g *arrayFile) write(z *zip.Writer, name string) error {
	if g.text != nil {
		if err := g.spell(); err != nil {
			return err
		}
	}
	if _, err := g.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	whole := slices.Clone(g.shapes[0])
	for _, s := range g.shapes[1:] {
		// A run with other sizes cannot be joined with the first one.
		if !slices.Equal(s[1:], whole[1:]) {
			return g.writeRuns(z, name)
		}
		whole[0] += s[0]
	}
	return g.writeEntry(z, name, whole)
}

// writeRuns writes an array for each run.
func (g *arrayFile) writeRuns(z *zip.Writer, name string) error {
	for i, shape := range g.shapes {
		if err := g.writeEntry(z, fmt.Sprintf("%s.%d", name, i), shape); err != nil {
			return err
		}
	}
	return nil
}

// writeEntry writes an array from the position of the file.
func (g *arrayFile) writeEntry(z *zip.Writer, name string, shape []int64) error {
	w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err != nil {
		return err
	}
	descr, size := numpyType(g.dtype), g.dtype.Bits()/8
	if g.dtype == ir.String {
		descr, size = fmt.Sprintf("<U%d", g.width()), 4*g.width()
	}
	if _, err := w.Write(dataset.NPYHeader(descr, shape)); err != nil {
		return err
	}
	// The type of the spec counts elements, size is the bytes of one in NumPy.
	_, err = io.CopyN(w, g.file, ir.Spec{DType: ir.Uint8, Shape: shape}.Elems()*size)
	return err
}

// width is the number of characters of the longest string, at least 1.
func (g *arrayFile) width() int64 {
	most := 1
	for _, t := range g.text {
		most = max(most, utf8.RuneCountInString(t))
	}
	return int64(most)
}

// maxText bounds the strings of equal length that NumPy stores, in bytes.
const maxText = 1 << 30

// spell writes the strings as NumPy does, in UTF-32 and of equal length.
func (g *arrayFile) spell() error {
	width := int(g.width())
	if int64(width)*int64(len(g.text))*4 > maxText {
		return inapplicable("%d strings of up to %d characters take more than %d GiB in NumPy", len(g.text),
			width, maxText>>30)
	}
	w := bufio.NewWriter(g.file)
	for _, t := range g.text {
		line := make([]byte, 0, 4*width)
		for _, r := range t {
			line = binary.LittleEndian.AppendUint32(line, uint32(r))
		}
		// The rest of the capacity is zeros, with which NumPy fills up shorter strings.
		if _, err := w.Write(line[:4*width]); err != nil {
			return err
		}
	}
	return w.Flush()
}

func (a *archive) close() error {
	var errs []error
	for _, g := range a.arrays {
		errs = append(errs, g.file.Close())
	}
	return errors.Join(errs...)
}
