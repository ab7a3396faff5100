//go:build !amd64 || noasm

package kernel

// Without assembly the twin decodes.
func decodeHuffmanBulk(*HuffmanStreams, *HuffmanTable, int) bool { return false }
