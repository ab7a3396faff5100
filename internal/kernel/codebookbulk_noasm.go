//go:build !amd64 || noasm

package kernel

func (c *Codebook) searchScaleBulk([]byte, []float32, int) int { return 0 }

func (c *Codebook) nearestBulk([]byte, []float32, []byte, int) int { return 0 }

func (c *Codebook) balanceRowBulk([]byte, Blocks, []float32, float32) int { return 0 }

func (c *Codebook) balanceRunBulk(_ []byte, _ Blocks, carry float32) (bool, float32) {
	return false, carry
}

func blockMagnitudesBulk([]byte, []float32, int, *[octaveSteps]uint32) int { return 0 }

func (l *Lookup) decodeBulk([]float32, int, int, int, int, int) int { return 0 }
