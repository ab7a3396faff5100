//go:build amd64 && !noasm

package kernel

import "golang.org/x/sys/cpu"

var hasBMI2 = hasAVX2 && cpu.X86.HasBMI2

func decodeHuffmanBulk(s *HuffmanStreams, t *HuffmanTable, groups int) bool {
	if hasBMI2 {
		decodeHuffmanBMI2(&s.In[0], &t[0], groups)
	}
	return hasBMI2
}
