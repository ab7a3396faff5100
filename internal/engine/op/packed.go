package op

import "github.com/mcompress/mcompress/internal/kernel"

// Packed is a constant of type Float that is in memory in a smaller form, such as indices into a codebook. Operators
// that accept it decode the part that they compute with. Its elements have no shape: they are in the order of the dense
// tensor.
type Packed interface {
	// Decode writes part p of the elements to dst. Several workers call it concurrently.
	Decode(dst []float32, p Part)
	// Bytes is the size in memory. It is known before the data are.
	Bytes() int64
}

// An Arranged is a Packed that products can have in the layout of their kernels.
type Arranged interface {
	Packed
	// Arrange stores the elements as the k×n matrix in which element (k, n) is k·row + n·col, if it is possible and no
	// other matrix is stored. It changes Bytes, and is called while a model is loaded only; also if memory is only
	// planned.
	Arrange(k, n, row, col int, p *Pool)
	// Matrix is the matrix of these distances, nil if there is none.
	Matrix(row, col int) *kernel.Quantized
}

// A Part is rows of elements: element j of row i is element At+i·Stride+j of the tensor, and is written to
// dst[i·DstRow+j·DstCol].
type Part struct {
	At, Stride, Rows, Cols int
	DstRow, DstCol         int
}
