//go:build amd64 && !noasm

package kernel

func dequantizePanelBulk(dst []float32, codes []byte, bits int, scale, zero []float32) bool {
	if !hasAVX2 {
		return false
	}
	rows := len(dst) / GemmPanel
	switch bits {
	case 2:
		dequantizePanel2AVX2(&dst[0], &codes[0], rows, &scale[0], &zero[0])
	case 4:
		dequantizePanel4AVX2(&dst[0], &codes[0], rows, &scale[0], &zero[0])
	default:
		dequantizePanel8AVX2(&dst[0], &codes[0], rows, &scale[0], &zero[0])
	}
	return true
}
