package kernel

// BlockMagnitudes writes the magnitude of the scale that is nearest to the largest magnitude of each block of x to dst:
// magnitudes are in equal ratios, octaveSteps an octave, up to 127 for the scale 1. Limits are those between the scales
// from 1 to 2, as float32 bits of their mantissas. At least half of the smallest scale is rounded up to it.
func BlockMagnitudes(dst []byte, x []float32, block int, limits *[octaveSteps]uint32) {
	within("x", len(x), len(dst)*block)
	for b := blockMagnitudesBulk(dst, x, block, limits); b < len(dst); b++ {
		dst[b] = magnitudeOf(absMaxBitsGo(x[b*block:][:block]), limits)
	}
}

const (
	exponentOf1  = 127 << 23
	mantissaBits = 1<<23 - 1
)

func magnitudeOf(bits uint32, limits *[octaveSteps]uint32) byte {
	m := int32(bits>>23)*octaveSteps + maxMagnitude - exponentOf1>>23*octaveSteps
	for _, l := range limits {
		if bits&mantissaBits > l {
			m++
		}
	}
	if m > -octaveSteps {
		m = max(m, 1)
	}
	return byte(min(max(m, 0), maxMagnitude))
}
