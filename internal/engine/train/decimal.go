package train

import "strconv"

// decimal returns the decimal number that an attribute was written as: 0.999 as a float32 has an error of 1e-8, and
// 1-0.999 one of 1e-5.
func decimal(f float32) float64 {
	x, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		return float64(f)
	}
	return x
}
