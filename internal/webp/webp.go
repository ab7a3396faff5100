// Package webp decodes WebP pictures to images whose colours are those of the file. Importing it registers the format
// with package image, but image.Decode has golang.org/x/image/webp's colours.
package webp

import (
	"image"
	"io"
	"math"

	"golang.org/x/image/webp"
)

// Name is that of the format in package image.
const Name = "webp"

// DecodeConfig is the size of a picture.
func DecodeConfig(r io.Reader) (image.Config, error) { return webp.DecodeConfig(r) }

// Decode decodes a picture. Lossy WebP has the limited range of ITU-R BT.601, luma from 16 to 235 and chroma from 16 to
// 240, and image.YCbCr is of the full range of JPEG.
func Decode(r io.Reader) (image.Image, error) {
	m, err := webp.Decode(r)
	switch m := m.(type) {
	case *image.YCbCr:
		fullRange(m)
	case *image.NYCbCrA:
		fullRange(&m.YCbCr)
	}
	return m, err
}

// fullRange expands the samples of m from limited to full range, in place.
func fullRange(m *image.YCbCr) {
	expand := func(plane []byte, zero, to, levels int) {
		var table [256]byte
		for v := range table {
			table[v] = byte(min(255, max(0, to+int(math.Round(float64((v-zero)*255)/float64(levels))))))
		}
		for i, v := range plane {
			plane[i] = table[v]
		}
	}
	const lumaLevels, chromaLevels = 219, 224
	expand(m.Y, 16, 0, lumaLevels)
	expand(m.Cb, 128, 128, chromaLevels)
	expand(m.Cr, 128, 128, chromaLevels)
}
