//go:build !amd64 || noasm

package kernel

func (f SmallFloat) codesBulk([]byte, []float32, float32) (n int) { return 0 }

func (f SmallFloat) codesColsBulk(_ []byte, _, _ []float32) (cols int) { return 0 }

func (f SmallFloat) errorsBulk(*[BlockCols]float32, []float32, *[BlockCols]float32) bool {
	return false
}
