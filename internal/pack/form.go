package pack

import (
	"fmt"

	"github.com/mcompress/mcompress/ir"
)

// A predictor predicts each element; the difference is stored.
type predictor byte

const (
	noPredictor   predictor = iota
	previousValue           // the element before, for sorted positions
	baseValue               // the element of the base; the payload begins with its place
)

// A layout is how the bytes of elements are ordered before entropy coding.
type layout byte

const (
	planes layout = iota // the first bytes of all elements, then the second ones
	// The same after a rotation by one bit to the left, so that the exponent of a float has bytes of its own.
	rotatedPlanes
	nibbles // a byte for each half of a byte, the lower one first
)

// A form is how the content of a chunk becomes symbols.
type form struct {
	predictor predictor
	width     byte // bytes of an element: 1, 2, 4 or 8
	layout    layout
}

var plain = form{width: 1}

// valid rejects forms that no writer makes, for content of n bytes.
func (f form) valid(n int) error {
	switch {
	case f.predictor > baseValue || f.layout > nibbles,
		f.width != 1 && f.width != 2 && f.width != 4 && f.width != 8,
		f.layout == nibbles && f.width != 1,
		f.layout == rotatedPlanes && (f.width == 1 || f.predictor != noPredictor),
		n%int(f.width) != 0:
		return fmt.Errorf("unknown form %d, %d, %d of %d bytes", f.predictor, f.width, f.layout, n)
	}
	return nil
}

// symbols is the number of planes, and of symbols in each, of n bytes of content.
func (f form) symbols(n int) (count, each int) {
	if f.layout == nibbles {
		return 1, 2 * n
	}
	return int(f.width), n / int(f.width)
}

// String names the form in the index.
func (f form) String() string {
	text := [...]string{planes: "planes", rotatedPlanes: "float planes", nibbles: "nibbles"}[f.layout]
	if f.width == 1 && f.layout == planes {
		text = "bytes"
	}
	return [...]string{
		noPredictor: "", previousValue: "differences, ", baseValue: "differences from base, ",
	}[f.predictor] + text
}

// forms are the forms that are tried for tensors of a type.
func forms(t ir.DType, base bool) []form {
	var fs []form
	width := byte(max(1, t.Bits()/8))
	if t == ir.Complex64 || t == ir.Complex128 {
		width /= 2
	}
	// Differences first, and the forms without them too: a tensor that has been trained anew may have nothing in
	// common with its base.
	if base {
		fs = append(fs, form{baseValue, width, planes})
		if width == 1 {
			fs = append(fs, form{baseValue, 1, nibbles})
		}
		return append(fs, forms(t, false)...)
	}
	switch {
	case t.IsFloat() || t == ir.Complex64 || t == ir.Complex128:
		fs = []form{{noPredictor, width, rotatedPlanes}, {noPredictor, width, planes}, plain}
	// Positions of sparse elements are sorted, so that differences are small.
	case width > 1:
		fs = []form{{previousValue, width, planes}, {noPredictor, width, planes}, plain}
	case t.Known():
		fs = []form{plain, {noPredictor, 1, nibbles}}
	default:
		fs = []form{plain}
	}
	return fs
}
