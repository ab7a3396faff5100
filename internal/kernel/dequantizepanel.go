package kernel

import "fmt"

// DequantizePanel writes (q-zero)·scale for rows of 16 quantized values of 2, 4 or 8 bits, which are packed lowest bits first. scale and
// zero have 16 elements, one per column.
func DequantizePanel(dst []float32, codes []byte, bits int, scale, zero []float32) {
	if bits != 2 && bits != 4 && bits != 8 {
		panic(fmt.Sprintf("kernel: values of %d bits, want 2, 4 or 8", bits))
	}
	checkRows(len(dst), GemmPanel)
	checkLen("scale", len(scale), GemmPanel)
	checkLen("zero", len(zero), GemmPanel)
	within("codes", len(codes), len(dst)*bits/8)
	if len(dst) > 0 && !dequantizePanelBulk(dst, codes, bits, scale, zero) {
		dequantizePanelGo(dst, codes, bits, scale, zero)
	}
}

func dequantizePanelGo(dst []float32, codes []byte, bits int, scale, zero []float32) {
	for i := range dst {
		at := i * bits
		code := codes[at/8] >> (at % 8) & (1<<bits - 1)
		dst[i] = (float32(code) - zero[i%GemmPanel]) * scale[i%GemmPanel]
	}
}
