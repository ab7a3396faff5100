//go:build !amd64 || noasm

package kernel

// Without assembly the twins do everything.

func gemmRows() int { return 6 }

func (g *gemm) bulk() bool { return false }

func (g *gemmInt) bulk() bool { return false }

func (p *quadPanel) bulk() (k int) { return 0 }

func widenBulk([]int16, []byte, bool, int32) (n int, sum int32) { return 0, 0 }
