//go:build amd64 && !noasm

package kernel

// A roundSpace is a RoundSpace in the layout of roundSearchAVX2: Lowest and Largest are the symmetric quantized values
// that negative and positive ranges map to, Levels is the number of steps.
type roundSpace struct {
	Low, High, Middle, Lowest, Largest, Levels float32
}

func roundSearchBulk(r *RoundResult, x []float32, stride int, weight []float32, s RoundSpace) bool {
	space := roundSpace{s.Low, s.High, s.Middle, s.Low - s.Middle, s.largest(), s.High - s.Low}
	switch f, n := &s.Fractions[0], len(s.Fractions); {
	case hasAVX512:
		roundSearchAVX512(&r.Low[0], &space.Low, &x[0], 4*stride, &weight[0], len(weight), f, n, s.Refits, s.Symmetric)
		return true
	case hasAVX2:
		for j := 0; j < RoundLanes; j += 8 {
			roundSearchAVX2(&r.Low[j], &space.Low, &x[j], 4*stride, &weight[0], len(weight), f, n, s.Refits,
				s.Symmetric)
		}
		return true
	}
	return false
}

func roundErrorsBulk(dst []byte, errors, x, w, scale []float32, zero []int32, c IntRange) (n int) {
	if n = len(dst) &^ 7; hasAVX2 && n > 0 {
		roundErrorsAVX2(&dst[0], &errors[0], &x[0], &w[0], n, &scale[0], &zero[0], c.Lo, c.Hi)
		return n
	}
	return 0
}
