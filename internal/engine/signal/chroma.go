package signal

import "image"

// An upsampledImage is an image whose chroma has half its resolution in both directions or in one. ONNX requires the
// interpolation of libjpeg-turbo ("fancy"), while Go repeats samples.
type upsampledImage struct {
	img          *image.YCbCr
	w, h         int // of a chroma plane
	across, down bool
}

// newUpsampledImage is nil for ratios that are not interpolated.
func newUpsampledImage(img *image.YCbCr) *upsampledImage {
	u := &upsampledImage{img: img, w: img.Rect.Dx(), h: img.Rect.Dy()}
	switch img.SubsampleRatio {
	case image.YCbCrSubsampleRatio444:
	case image.YCbCrSubsampleRatio422:
		u.across = true
	case image.YCbCrSubsampleRatio420:
		u.across, u.down = true, true
	default:
		return nil
	}
	if u.across {
		u.w = (u.w + 1) / 2
	}
	if u.down {
		u.h = (u.h + 1) / 2
	}
	return u
}

func (u *upsampledImage) at(x, y int) pixel {
	luma := int32(u.img.Y[y*u.img.YStride+x])
	return toRGB(luma, u.chroma(u.img.Cb, x, y)-128, u.chroma(u.img.Cr, x, y)-128)
}

// chroma weights the nearest sample of the plane with 3/4 in each interpolated direction, and the next one on the
// pixel's other side with 1/4. Halves are rounded down and up alternately.
func (u *upsampledImage) chroma(plane []uint8, x, y int) int32 {
	column := func(x int) int32 { // four times the sample at (x, y), interpolated vertically
		if !u.down {
			return int32(plane[y*u.img.CStride+x])
		}
		near, next := neighbours(y, u.h)
		return 3*int32(plane[near*u.img.CStride+x]) + int32(plane[next*u.img.CStride+x])
	}
	if !u.across {
		return column(x)
	}
	near, next := neighbours(x, u.w)
	sum, odd := 3*column(near)+column(next), int32(x%2)
	if u.down {
		return (sum + 8 - odd) >> 4
	}
	return (sum + 1 + odd) >> 2
}

// neighbours are the samples nearest to position i of a line twice as long as the n samples; at the ends both are the
// last one.
func neighbours(i, n int) (near, next int) {
	near = i / 2
	next = near - 1 + i%2*2
	return near, min(max(next, 0), n-1)
}

// toRGB converts by JFIF, with 16 fractional bits.
func toRGB(y, cb, cr int32) pixel {
	const half = 1 << 15
	return pixel{
		clamp(y + (91881*cr+half)>>16),
		clamp(y + (-22554*cb-46802*cr+half)>>16),
		clamp(y + (116130*cb+half)>>16),
	}
}

func clamp(x int32) uint8 { return uint8(min(max(x, 0), 255)) }
