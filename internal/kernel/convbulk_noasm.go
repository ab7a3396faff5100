//go:build !amd64 || noasm

package kernel

// Without assembly the twins process all elements.

func packLanesBulk(_, _ []float32, _, _, _, _, _, _ int, _ bool) bool { return false }

func copyRowsBulk(_ []float32, _ int, _ []float32, _, _, _ int) bool { return false }

func packLanesAtBulk(_, _ []float32, _ []int32, _, _, _ int, _ bool) bool { return false }

func weightRowsBulk(_ []float32, _ int, _ []float32, _, _, _ int, _ []int64, _ []float32, _ float32) bool {
	return false
}

func winogradInputBulk(_ []float32, _ int, _ []float32, _, _, _ int) bool { return false }

func winogradOutputBulk(_ []float32, _ int, _ []float32, _, _, _ int, _ []float32) bool { return false }

func (b *ByteWindow) bulk(_, _ []byte, _, _ int) (channels int) { return 0 }

func (f *FloatWindow) bulk(_ []float32, _ int, _ []float32, _, _ int) bool { return false }

func maxWindowsBulk(_, _ []float32, _ []int64, _ int, _ float32) bool { return false }
