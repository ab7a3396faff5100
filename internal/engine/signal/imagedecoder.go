package signal

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg"
	_ "image/png"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/webp"
	"github.com/mcompress/mcompress/ir"
)

func pictures() []op.Op {
	return []op.Op{{Type: "ImageDecoder", Since: 20, Run: runImageDecoder}}
}

// A pixel is red, green and blue.
type pixel [3]uint8

// pixelFormats append a pixel in the output's format.
var pixelFormats = map[string]struct {
	channels int64
	put      func(b []byte, p pixel) []byte
}{
	"RGB": {3, func(b []byte, p pixel) []byte { return append(b, p[0], p[1], p[2]) }},
	"BGR": {3, func(b []byte, p pixel) []byte { return append(b, p[2], p[1], p[0]) }},
	"Grayscale": {1, func(b []byte, p pixel) []byte { // ITU-R BT.601
		return append(b, uint8((19595*uint32(p[0])+38470*uint32(p[1])+7471*uint32(p[2])+1<<15)>>16))
	}},
}

// bytesPerPixel is the maximum size of a pixel of a decoded image, which has 16 bits per channel.
const bytesPerPixel = 8

// runImageDecoder returns [height,width,channels]; [0,0,channels] if it cannot decode, by the specification. It
// supports PNG, JPEG and WebP, whatever else a program imports.
func runImageDecoder(c *op.Call) error {
	a, err := tensor(c.In, 0, "encoded_stream")
	if err != nil {
		return err
	}
	if a.DType != ir.Uint8 || len(a.Shape) != 1 {
		return fmt.Errorf("encoded_stream is %s, want bytes", a)
	}
	format, ok := pixelFormats[c.Text("pixel_format", "RGB")]
	if !ok {
		return fmt.Errorf("pixel_format is %q, want RGB, BGR or Grayscale", c.Text("pixel_format", "RGB"))
	}
	// The size is in the header: a picture of any size is some bytes compressed, so it is checked before it is
	// decoded.
	size, kind, err := image.DecodeConfig(bytes.NewReader(a.Data))
	if err == nil {
		if err := c.Account.Check(bytesPerPixel * int64(size.Width) * int64(size.Height)); err != nil {
			return err
		}
	}
	img, err := decodePicture(a.Data, kind)
	if err != nil {
		_, err := c.Make(0, ir.Uint8, 0, 0, format.channels)
		return err
	}
	r, at := img.Bounds(), pixelsOf(img)
	y, err := c.Make(0, ir.Uint8, int64(r.Dy()), int64(r.Dx()), format.channels)
	if err != nil {
		return err
	}
	out := y.Data[:0]
	for y := range r.Dy() {
		for x := range r.Dx() {
			out = format.put(out, at(x, y))
		}
	}
	return nil
}

// decodePicture decodes a picture of the kind that image.DecodeConfig found.
func decodePicture(data []byte, kind string) (image.Image, error) {
	// The decoder that is registered leaves lossy colours in limited range, which are paler than those of the file.
	if kind == webp.Name {
		return webp.Decode(bytes.NewReader(data))
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	return img, err
}

// pixelsOf reads an image by column and row, from 0.
func pixelsOf(img image.Image) func(x, y int) pixel {
	if ycc, ok := img.(*image.YCbCr); ok {
		if up := newUpsampledImage(ycc); up != nil {
			return up.at
		}
	}
	origin := img.Bounds().Min
	return func(x, y int) pixel {
		p := color.NRGBAModel.Convert(img.At(origin.X+x, origin.Y+y)).(color.NRGBA)
		return pixel{p.R, p.G, p.B}
	}
}
