package train

import "strconv"

// decimal is the number that an attribute was written as: 0.999 is 1e-8 off as a float32, and 1-0.999 is
// 1e-5 off then.
func decimal(f float32) float64 {
	x, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		return float64(f)
	}
	return x
}
