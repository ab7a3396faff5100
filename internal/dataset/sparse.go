package dataset

import (
	"fmt"
	"slices"

	"github.com/mcompress/mcompress/ir"
)

// A sparseMatrix is a column whose samples are the rows of a matrix in compressed sparse row (CSR) form, as
// scipy.sparse.save_npz writes it: the entries of row i are those from starts[i] to starts[i+1]. Rows are made dense
// when they are loaded; duplicate entries are added, as SciPy does.
type sparseMatrix struct {
	name                    string
	n, columns              int64
	starts, indices, values *array
	resident                int64 // bytes in memory of a matrix that was converted
}

// sparseBlock is the number of entries that are read at a time.
const sparseBlock = 4096

// maxConverted bounds the memory of a matrix of another form, which is converted to CSR in memory.
const maxConverted = 2 << 30

// sparseKeys are the arrays of a sparse matrix in an .npz file, besides data and shape.
var sparseKeys = []string{"indices", "indptr", "row", "col", "coords", "offsets"}

// isSparse reports whether arrays of these names are a sparse matrix for a model with these inputs.
func isSparse(names []string, inputs []Input) bool {
	has := func(wanted ...string) bool {
		return !slices.ContainsFunc(wanted, func(name string) bool { return !slices.Contains(names, name) })
	}
	for _, in := range inputs {
		if slices.Contains(sparseKeys, in.Name) {
			return false
		}
	}
	return has("data", "shape") && (has("indices", "indptr") || has("row", "col") || has("coords") || has("offsets"))
}

// openSparse makes the matrix in an .npz file the only column of s. Other arrays may be labels. array opens an array,
// or a scalar, by its name.
func (s *samples) openSparse(array func(string) (*array, error)) error {
	form := "csr" // of files without one, written by numpy.savez
	if slices.Contains(s.names, "format") {
		a, err := array("format")
		if err != nil {
			return err
		}
		if form, err = a.word(); err != nil {
			return err
		}
	}
	m := &matrixFile{path: s.path, array: array}
	matrix, err := m.readMatrix(form)
	if err != nil {
		return fmt.Errorf("%s: sparse matrix in format %q: %w", s.path, form, err)
	}
	s.only = matrix
	s.names = slices.DeleteFunc(s.names, func(name string) bool {
		return slices.Contains(sparseKeys, name) || slices.Contains([]string{"data", "shape", "format", "_is_array"}, name)
	})
	return nil
}

// word is the first element of an array of strings.
func (a *array) word() (string, error) {
	if a.elem.dtype != ir.String || a.n < 1 || a.elems() != 1 {
		return "", fmt.Errorf("%s: not a string", a.row().Name)
	}
	raw := make([]byte, a.rowBytes())
	if err := a.readSamples(raw, 0, 1); err != nil {
		return "", err
	}
	text, err := a.decode(raw, 1)
	if err != nil {
		return "", err
	}
	return text.Text[0], nil
}

func (m *sparseMatrix) rows() int64 { return m.n }

func (m *sparseMatrix) row() ir.Spec {
	return ir.Spec{Name: m.name, DType: m.values.elem.dtype, Shape: []int64{m.columns}}
}

// held counts dense rows and the buffers of entries.
func (m *sparseMatrix) held(n int64) int64 { return n*m.row().Bytes() + m.transient(n) }

func (m *sparseMatrix) transient(int64) int64 { return 4 * 8 * sparseBlock }

func (m *sparseMatrix) random(dir string) error {
	for _, a := range []*array{m.starts, m.indices, m.values} {
		if err := a.random(dir); err != nil {
			return err
		}
	}
	return nil
}

func (m *sparseMatrix) load(index []int, to *buffers) (func() (*ir.Array, error), error) {
	dense := to.array(m.values.elem.dtype, int64(len(index)), m.columns)
	clear(dense.Data)
	for at := 0; at < len(index); {
		n := following(index[at:])
		if err := m.expand(dense, int64(at), int64(index[at]), int64(n)); err != nil {
			return nil, err
		}
		at += n
	}
	return func() (*ir.Array, error) { return dense, nil }, nil
}

// expand adds the entries of n rows, starting with first, to the rows of dense that start with to.
func (m *sparseMatrix) expand(dense *ir.Array, to, first, n int64) error {
	starts := make([]int64, n+1)
	if err := m.starts.integers(starts, first); err != nil {
		return err
	}
	add := adders()[dense.DType]
	columns, values := make([]int64, sparseBlock), make([]byte, sparseBlock*m.values.elem.size)
	row := int64(0)
	for at := starts[0]; at < starts[n]; {
		count := min(sparseBlock, starts[n]-at)
		if err := m.indices.integers(columns[:count], at); err != nil {
			return err
		}
		raw := values[:count*m.values.elem.size]
		if err := m.values.readSamples(raw, at, count); err != nil {
			return fmt.Errorf("%s: %w", m.values.row().Name, err)
		}
		part, err := m.values.decode(raw, count)
		if err != nil {
			return err
		}
		for i := range count {
			// Several rows may be empty.
			for at+i >= starts[row+1] {
				row++
			}
			if columns[i] < 0 || columns[i] >= m.columns {
				return fmt.Errorf("%s: sample %d: column %d is not one of %d", m.name, first+row, columns[i], m.columns)
			}
			// This turns the column into the position in dense.
			columns[i] += (to + row) * m.columns
		}
		add(dense, part, columns[:count])
		at += count
	}
	return nil
}

// integers reads elements of an array without axes, starting with first.
func (a *array) integers(to []int64, first int64) error {
	raw := make([]byte, int64(len(to))*a.elem.size)
	if err := a.readSamples(raw, first, int64(len(to))); err != nil {
		return fmt.Errorf("%s: %w", a.row().Name, err)
	}
	x, err := a.decode(raw, int64(len(to)))
	if err == nil {
		reader[int64](a.elem.dtype)(to, x, 0)
	}
	return err
}

// adders add values to elements of a dense array at these positions, by data type: those of matrices that SciPy has,
// complex numbers aside.
func adders() map[ir.DType]func(dense, values *ir.Array, at []int64) {
	return map[ir.DType]func(dense, values *ir.Array, at []int64){
		ir.Bool: func(dense, values *ir.Array, at []int64) {
			for i, p := range at {
				dense.Data[p] |= values.Data[i]
			}
		},
		ir.Int8: addAt[int8], ir.Int16: addAt[int16], ir.Int32: addAt[int32], ir.Int64: addAt[int64],
		ir.Uint8: addAt[uint8], ir.Uint16: addAt[uint16], ir.Uint32: addAt[uint32], ir.Uint64: addAt[uint64],
		ir.Float: addAt[float32], ir.Double: addAt[float64],
	}
}

type addable interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

func addAt[T addable](dense, values *ir.Array, at []int64) {
	x, v := ir.View[T](dense), ir.View[T](values)
	for i, p := range at {
		x[p] += v[i]
	}
}
