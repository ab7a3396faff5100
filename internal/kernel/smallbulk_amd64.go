//go:build amd64 && !noasm

package kernel

import "math/bits"

func (f SmallFloat) codesBulk(dst []byte, x []float32, scale float32) (n int) {
	if n = whole(len(x)); n > 0 {
		smallCodesAVX2(&dst[0], &x[0], n, scale, f.normal(), f.unit(), f.round(), uint32(f.sign), uint32(f.largest),
			f.drop(), f.down())
	}
	return n
}

func (f SmallFloat) codesColsBulk(dst []byte, x, scale []float32) (cols int) {
	if cols = whole(len(scale)); cols == 0 {
		return 0
	}
	for at := 0; at < len(x); at += len(scale) {
		smallCodesColsAVX2(&dst[at], &x[at], cols, &scale[0], f.normal(), f.unit(), f.round(), uint32(f.sign),
			uint32(f.largest), f.drop(), f.down())
	}
	return cols
}

// down is the shift of a float32's sign to the sign of an encoded value.
func (f SmallFloat) down() uint32 { return uint32(32 - bits.Len8(f.sign)) }

func (f SmallFloat) errorsBulk(sums *[BlockCols]float32, x []float32, scale *[BlockCols]float32) bool {
	if hasAVX2 && len(x) > 0 {
		smallErrorsAVX2(&sums[0], &x[0], len(x)/BlockCols, &scale[0], f.normal(), f.drop()<<23, f.Largest())
	}
	return hasAVX2
}
