package dataset

import (
	"encoding/binary"
	"fmt"

	"github.com/mcompress/mcompress/ir"
)

// idxTypes are the element types of IDX files by the third byte, all big-endian
// (http://yann.lecun.com/exdb/mnist).
func idxTypes() map[byte]ir.DType {
	return map[byte]ir.DType{0x08: ir.Uint8, 0x09: ir.Int8, 0x0b: ir.Int16, 0x0c: ir.Int32, 0x0d: ir.Float,
		0x0e: ir.Double}
}

// isIDX reports whether a file that starts with head can be an IDX file.
func isIDX(head []byte) bool {
	return len(head) >= 8 && head[0] == 0 && head[1] == 0 && idxTypes()[head[2]] != ir.Undefined && head[3] > 0
}

// parseIDX reads the header of an IDX file and checks it against c.
func parseIDX(c *content) (*array, error) {
	const most = 8 // axes
	head := c.head(4 + 4*most)
	if !isIDX(head) || head[3] > most || len(head) < 4+4*int(head[3]) {
		return nil, fmt.Errorf("%s: not a valid IDX file of at most %d axes", c.name, most)
	}
	dt := idxTypes()[head[2]]
	shape := make([]int64, head[3])
	for i := range shape {
		shape[i] = int64(binary.BigEndian.Uint32(head[4+4*i:]))
	}
	size := dt.Bits() / 8
	if err := validShape(shape, size); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	a := &array{from: c, n: shape[0], shape: shape[1:], off: int64(4 + 4*len(shape))}
	a.elem = element{dtype: dt, size: size, swap: size}
	a.stride = a.rowBytes()
	return a, a.checkSize()
}
