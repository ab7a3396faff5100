//go:build !amd64 || noasm

package kernel

func gemmRows() int { return 6 }

func (g *gemm) bulk() bool { return false }
