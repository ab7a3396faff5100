//go:build amd64 && !noasm

package kernel

func roundCostBulk(s *RoundSums, x []float32, stride int, weight []float32, g *RoundGrid) bool {
	if hasAVX2 {
		roundSumsAVX2(&s.Cost[0], &x[0], 4*stride, &weight[0], len(weight), &g.Inverse[0])
	}
	return hasAVX2
}
