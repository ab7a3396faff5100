// Command gen writes the assembly of package kernel and its Go declarations, a file of each per family of functions:
// `-family NAME` for ../NAME_amd64.s and ../NAME_amd64.go. It is a module of its own so that building mcompress does
// not need avo; `go generate ./internal/kernel` runs it.
package main

import (
	"flag"

	. "github.com/mmcloughlin/avo/build"
)

// families are the functions that emit each of the outputs. A new one is a row here and a go:generate line in
// ../doc.go; the test in ../generated_test.go finds it by its file.
func families() map[string]func() {
	return map[string]func(){
		"activation": activationFamily,
		"amx":        amxFamily,
		"avx2":       quantizationFamily,
		"bits":       bitsFamily,
		"blocks":     blocksFamily,
		"codebook":   codebookFamily,
		"conv":       convFamily,
		"depthwise":  depthwiseFamily,
		"gemm":       gemmFamily,
		"gemmfinish": gemmFinishFamily,
		"half":       halfFamily,
		"huffman":    huffmanFamily,
		"math":       mathFamily,
		"planes":     planesFamily,
		"quad":       quadFamily,
		"round":      roundFamily,
		"small":      smallFamily,
		"spmm":       spmmFamily,
		"storage":    storageFamily,
	}
}

func main() {
	name := flag.String("family", "avx2", "family of functions to write")
	flag.Parse()
	family, known := families()[*name]
	if !known {
		panic("family " + *name + " is not one of those in main.go")
	}
	ConstraintExpr("amd64,!noasm")
	family()
	Generate()
}
