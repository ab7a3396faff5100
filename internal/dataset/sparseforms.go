package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A matrixFile reads a sparse matrix in one of the formats of scipy.sparse.save_npz. CSR is left in the file, other
// formats are converted in memory.
type matrixFile struct {
	path          string
	array         func(name string) (*array, error)
	rows, columns int64
	values        *array // all of them along one axis
	shape         []int64
	err           error // the first one of vector and cursor
}

// entries calls put for each stored element of a matrix: row, column, and the position of its value, in increasing
// order.
type entries func(put func(row, column, at int64) error) error

func (f *matrixFile) readMatrix(form string) (*sparseMatrix, error) {
	if err := f.open(); err != nil {
		return nil, err
	}
	var all entries
	switch form {
	case "csr":
		return f.csr()
	case "csc":
		all = f.csc()
	case "coo":
		all = f.coo()
	case "bsr":
		all = f.bsr()
	case "dia":
		all = f.dia()
	default:
		return nil, errors.New("unknown format; csr, csc, bsr, coo and dia are supported")
	}
	if f.err != nil {
		return nil, f.err
	}
	return f.toCSR(all)
}

// open reads the shape and opens the values.
func (f *matrixFile) open() error {
	shape := f.vector("shape")
	values, err := f.array("data")
	if err = errors.Join(f.err, err); err != nil {
		return err
	}
	if shape.n != 2 {
		return fmt.Errorf("it has %d axes; the samples of a matrix are its rows", shape.n)
	}
	sizes := make([]int64, 2)
	if err := shape.integers(sizes, 0); err != nil {
		return err
	}
	f.rows, f.columns = sizes[0], sizes[1]
	elem := values.elem
	row := ir.Spec{DType: elem.dtype, Shape: []int64{f.columns}}
	switch {
	case f.rows < 0 || f.columns < 0 || row.Valid() != nil || row.Bytes() > maxSample:
		return fmt.Errorf("invalid shape %v; a row has at most %d bytes", sizes, maxSample)
	case adders()[elem.dtype] == nil:
		return fmt.Errorf("values of %s are not supported", elem.dtype)
	case values.fortran:
		return errors.New("its data is in Fortran order; save it as CSR, with tocsr()")
	}
	f.shape = append([]int64{values.n}, values.shape...)
	f.values = &array{from: values.from, name: values.name, elem: elem, n: elems(f.shape), off: values.off,
		stride: elem.size}
	return nil
}

// vector opens an array of one axis of integers.
func (f *matrixFile) vector(name string) *array {
	a, err := f.array(name)
	if err == nil && (len(a.shape) != 0 || !isInteger(a.elem.dtype) || a.elem.dtype == ir.Uint64) {
		err = fmt.Errorf("array %q is not a list of integers", name)
	}
	if f.err == nil {
		f.err = err
	}
	if err != nil {
		// Callers use the array before they look at the error: an empty one does no harm.
		return inMemory(name, []int64{})
	}
	return a
}

// counts checks that an array has as many elements as expected.
func (f *matrixFile) counts(what string, got, want int64) {
	if got != want && f.err == nil {
		f.err = fmt.Errorf("%s has %d elements, want %d", what, got, want)
	}
}

// csr checks the starts of the rows. The columns of entries are checked when they are loaded.
func (f *matrixFile) csr() (*sparseMatrix, error) {
	starts, indices := f.vector("indptr"), f.vector("indices")
	f.counts("indptr", starts.n, f.rows+1)
	f.counts("indices", indices.n, f.values.n)
	f.axes(1)
	if f.err != nil {
		return nil, f.err
	}
	return f.matrix(starts, indices, f.values), f.increasing(starts, indices.n)
}

func (f *matrixFile) matrix(starts, indices, values *array) *sparseMatrix {
	return &sparseMatrix{name: f.path, n: f.rows, columns: f.columns, starts: starts, indices: indices, values: values}
}

// axes checks the number of axes of the data.
func (f *matrixFile) axes(want int) {
	if len(f.shape) != want && f.err == nil {
		f.err = fmt.Errorf("data has %d axes, want %d", len(f.shape), want)
	}
}

// increasing checks that starts begin with 0 and never decrease, up to most.
func (f *matrixFile) increasing(starts *array, most int64) error {
	c, last := &cursor{a: starts}, int64(0)
	for i := range starts.n {
		at, err := c.next()
		switch {
		case err != nil:
			return err
		case i == 0 && at != 0, at < last, at > most:
			return fmt.Errorf("indptr %d is %d: the values must increase from 0 to at most %d", i, at, most)
		}
		last = at
	}
	return nil
}

// compressedEntries are the entries of a compressed axis: put gets its number, the index of the entry, and its
// position.
func (f *matrixFile) compressedEntries(groups, stored int64) entries {
	starts, indices := f.vector("indptr"), f.vector("indices")
	f.counts("indptr", starts.n, groups+1)
	f.counts("indices", indices.n, stored)
	if f.err == nil {
		f.err = f.increasing(starts, stored)
	}
	return func(put func(group, index, at int64) error) error {
		ends, index := &cursor{a: starts, at: 1}, &cursor{a: indices}
		at := int64(0)
		for group := range groups {
			end, err := ends.next()
			if err != nil {
				return err
			}
			for ; at < end; at++ {
				i, err := index.next()
				if err != nil {
					return err
				}
				if err := put(group, i, at); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func (f *matrixFile) csc() entries {
	f.axes(1)
	all := f.compressedEntries(f.columns, f.values.n)
	return func(put func(row, column, at int64) error) error {
		return all(func(column, row, at int64) error { return put(row, column, at) })
	}
}

// bsr are the elements of blocks; data is blocks × rows × columns of a block.
func (f *matrixFile) bsr() entries {
	f.axes(3)
	if f.err != nil {
		return nil
	}
	h, w := f.shape[1], f.shape[2]
	if h < 1 || w < 1 || f.rows%h != 0 || f.columns%w != 0 {
		f.err = fmt.Errorf("blocks of %d×%d do not divide %d×%d", h, w, f.rows, f.columns)
		return nil
	}
	blocks := f.compressedEntries(f.rows/h, f.shape[0])
	return func(put func(row, column, at int64) error) error {
		return blocks(func(group, index, block int64) error {
			if index < 0 || index >= f.columns/w { // before it is multiplied
				return fmt.Errorf("block column %d is not one of %d", index, f.columns/w)
			}
			for i := range h * w {
				if err := put(group*h+i/w, index*w+i%w, block*h*w+i); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func (f *matrixFile) coo() entries {
	f.axes(1)
	rows, columns := f.vector("row"), f.vector("col")
	f.counts("row", rows.n, f.values.n)
	f.counts("col", columns.n, f.values.n)
	return func(put func(row, column, at int64) error) error {
		r, c := &cursor{a: rows}, &cursor{a: columns}
		for at := range f.values.n {
			row, err := r.next()
			if err != nil {
				return err
			}
			column, err := c.next()
			if err != nil {
				return err
			}
			if err := put(row, column, at); err != nil {
				return err
			}
		}
		return nil
	}
}

// dia are the elements of diagonals: element j of one with offset k is in row j-k and column j. Those outside the
// matrix are padding.
func (f *matrixFile) dia() entries {
	offsets := f.vector("offsets")
	f.axes(2)
	f.counts("offsets", offsets.n, f.shape[0])
	return func(put func(row, column, at int64) error) error {
		c := &cursor{a: offsets}
		for d := range offsets.n {
			k, err := c.next()
			if err != nil {
				return err
			}
			if k <= -f.rows || k >= f.columns {
				continue
			}
			for j := max(0, k); j < min(f.columns, f.shape[1], f.rows+k); j++ {
				if err := put(j-k, j, d*f.shape[1]+j); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// toCSR sorts entries by row, in their order, into memory.
func (f *matrixFile) toCSR(all entries) (*sparseMatrix, error) {
	size := f.values.elem.size
	if f.rows >= maxConverted/8 || f.values.n >= maxConverted/(8+size) || 8*(f.rows+1)+(8+size)*f.values.n > maxConverted {
		return nil, fmt.Errorf("%d rows with %d values are too many to be converted in memory; save it as CSR, with tocsr()",
			f.rows, f.values.n)
	}
	starts, stored := make([]int64, f.rows+1), int64(0)
	err := all(func(row, column, _ int64) error {
		if row < 0 || row >= f.rows || column < 0 || column >= f.columns {
			return fmt.Errorf("element (%d, %d) is outside of %d×%d", row, column, f.rows, f.columns)
		}
		// The first pass counts, the second one below puts each entry in its place.
		starts[row+1]++
		stored++
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range f.rows {
		starts[i+1] += starts[i]
	}
	// Where the next entry of each row goes.
	next := slices.Clone(starts)
	indices, values := make([]int64, stored), make([]byte, stored*size)
	from := &cursor{a: f.values}
	err = all(func(row, column, at int64) error {
		raw, err := from.bytes(at)
		to := next[row]
		next[row]++
		indices[to] = column
		copy(values[to*size:][:size], raw)
		return err
	})
	elem := f.values.elem // swapped when it is decoded
	data := &array{from: &content{ReaderAt: memoryFile(values), name: f.path, size: int64(len(values))}, elem: elem,
		n: stored, stride: size}
	m := f.matrix(inMemory(f.path, starts), inMemory(f.path, indices), data)
	m.resident = int64(len(values)) + 8*(stored+f.rows+1)
	return m, err
}

// A cursor reads an array without axes from one element to the next, in blocks.
type cursor struct {
	a     *array
	at    int64 // of the next element
	first int64 // of the block
	block []byte
}

// next is the next element, an integer.
func (c *cursor) next() (int64, error) {
	raw, err := c.bytes(c.at)
	c.at++
	if err != nil {
		return 0, err
	}
	var word [8]byte
	copy(word[:], raw)
	swap(word[:len(raw)], c.a.elem.swap)
	x := binary.LittleEndian.Uint64(word[:])
	switch c.a.elem.dtype {
	case ir.Int8:
		return int64(int8(x)), nil
	case ir.Int16:
		return int64(int16(x)), nil
	case ir.Int32:
		return int64(int32(x)), nil
	}
	// Unsigned numbers are those of the word, which zeros fill up.
	return int64(x), nil
}

// bytes are those of element at, which is not before the block that was read last.
func (c *cursor) bytes(at int64) ([]byte, error) {
	size := c.a.elem.size
	if at-c.first >= int64(len(c.block))/size {
		n := min(sparseBlock, c.a.n-at)
		c.first, c.block = at, make([]byte, n*size)
		if err := c.a.readSamples(c.block, at, n); err != nil {
			return nil, fmt.Errorf("%s: %w", c.a.row().Name, err)
		}
	}
	return c.block[(at-c.first)*size:][:size], nil
}
