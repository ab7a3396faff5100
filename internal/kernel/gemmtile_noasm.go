//go:build !amd64 || noasm

package kernel

// Without assembly the twins process all elements.

func gemmRows() int { return 6 }

func (g *gemm) bulk() bool { return false }

func (g *gemmInt) bulk() bool { return false }

func (p *requantizedPairs) bulk() (cols int) { return 0 }

func (p *panelPack) bulk() (steps, cols int) { return 0, 0 }

func (p *stripPack) bulk() (steps, strips int) { return 0, 0 }

func (p *quadPack) bulk() (steps, cols int) { return 0, 0 }

func gemmIntWidth() int { return 1 }

func widenBulk(_ []byte, _ int, _ []byte, _, _ int, _ bool, _ int32, _ []int32) (done int) { return 0 }

func flipBulk(_, _ []byte, _ byte) (n int, sum int32) { return 0, 0 }

func shuffleBulk(_ []byte, _ int, _ []byte, _, _, _ int, _ byte, _ []byte) bool { return false }

func quadSumsBulk([]int32, []byte, int, int) (n int) { return 0 }

func lessBulk([]int32, int32) (n int) { return 0 }

func lessTimesBulk(_, _ []int32, _, _ int32) (n int) { return 0 }

func gemvBulk(_, _ []float32, _ int, _ []float32, _, _ int) (n int) { return 0 }

func (g *gemmAt) bulk() bool { return false }
