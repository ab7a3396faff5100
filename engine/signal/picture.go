package signal

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg"
	_ "image/png"

	"github.com/mcompress/mcompress/engine/op"
	"github.com/mcompress/mcompress/ir"
)

func pictures() []op.Op {
	return []op.Op{{Type: "ImageDecoder", Since: 20, Run: runImageDecoder}}
}

// runImageDecoder gives [height,width,channels]; [0,0,channels] for what it cannot decode, as ONNX says.
func runImageDecoder(c *op.Call) error {
	a, err := tensor(c.In, 0, "encoded_stream")
	if err != nil {
		return err
	}
	if a.DType != ir.Uint8 || len(a.Shape) != 1 {
		return fmt.Errorf("encoded_stream is %s, not bytes", a)
	}
	pixel, channels, err := pixelOf(c.Text("pixel_format", "RGB"))
	if err != nil {
		return err
	}
	img, _, err := image.Decode(bytes.NewReader(a.Data))
	if err != nil {
		c.Make(0, ir.Uint8, 0, 0, channels)
		return nil
	}
	r := img.Bounds()
	out := c.Make(0, ir.Uint8, int64(r.Dy()), int64(r.Dx()), channels).Data[:0]
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			out = pixel(out, img.At(x, y))
		}
	}
	return nil
}

// pixelOf appends a pixel in that format.
func pixelOf(format string) (appendTo func([]byte, color.Color) []byte, channels int64, err error) {
	switch format {
	case "RGB":
		return func(b []byte, c color.Color) []byte {
			p := color.NRGBAModel.Convert(c).(color.NRGBA)
			return append(b, p.R, p.G, p.B)
		}, 3, nil
	case "BGR":
		return func(b []byte, c color.Color) []byte {
			p := color.NRGBAModel.Convert(c).(color.NRGBA)
			return append(b, p.B, p.G, p.R)
		}, 3, nil
	case "Grayscale":
		return func(b []byte, c color.Color) []byte { return append(b, color.GrayModel.Convert(c).(color.Gray).Y) }, 1, nil
	}
	return nil, 0, fmt.Errorf("pixel_format %q is none of RGB, BGR, Grayscale", format)
}
