package dataset

import (
	"fmt"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/image/draw"

	"github.com/mcompress/mcompress/ir"
)

// maxPixels bounds the size of an image: Options.Memory does not include decoded images. With four channels of 16 bits
// the maximum is 512 MiB.
const maxPixels = 64 << 20

// An imageFolder is a column of image files, scaled to one size, with 8-bit samples.
type imageFolder struct {
	path   string // of the folder
	files  []string
	frame  frame
	read   *atomic.Int64 // bytes
	images *atomic.Int64 // bytes of decoded images in memory

	largest func() int64 // bytes of the largest image while it is decoded and scaled
}

// A frame is the image size of a model. Images are scaled to it.
type frame struct {
	height, width, channels int64
	last                    bool // channels are the last axis, not the first
}

// frameOf is the frame of an input by its shape or by Options.Reshape: the first or last axis of a sample is its
// channels, 1 for grey or 3 for RGB.
func frameOf(in Input, o Options) (frame, error) {
	dims := in.dims(o.Dims)
	if len(dims) == 4 {
		// Without the batch axis.
		dims = dims[1:]
	}
	if o.Reshape != nil {
		dims = nil
		for _, n := range o.Reshape {
			dims = append(dims, ir.Dim{N: n})
		}
	}
	shape := fmt.Sprintf("input %q is %s", in.Name, typeText(in.Type))
	if len(dims) != 3 {
		return frame{}, fmt.Errorf("%s: images require an input of batch, channels, height and width", shape)
	}
	isChannels := func(d ir.Dim) bool { return d.Known() && (d.N == 1 || d.N == 3) }
	f := frame{}
	switch {
	case isChannels(dims[0]):
		f.channels, dims = dims[0].N, dims[1:]
	case isChannels(dims[2]):
		f.channels, f.last = dims[2].N, true
	default:
		return f, fmt.Errorf("%s: the number of channels is neither 1 nor 3; set the shape with --reshape 3,HEIGHT,WIDTH",
			shape)
	}
	if !dims[0].Known() || !dims[1].Known() {
		return f, fmt.Errorf("%s: the height or width is dynamic; set it with --reshape %d,HEIGHT,WIDTH", shape, f.channels)
	}
	if f.height, f.width = dims[0].N, dims[1].N; f.height < 1 || f.width < 1 || f.height > maxPixels/f.width {
		return f, fmt.Errorf("%s: invalid image size", shape)
	}
	return f, nil
}

// openImages opens a folder of images, or of one folder per class.
func openImages(path string, in Input, o Options) (*samples, error) {
	s := &samples{path: path}
	if o.Layout != UnknownLayout {
		return s, fmt.Errorf("%s: layout is for arrays; images are decoded in the layout of the model", path)
	}
	f, err := frameOf(in, o)
	if err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	files, _, err := imagesIn(path)
	if err != nil {
		return s, err
	}
	folders, err := imageClasses(path)
	if err != nil {
		return s, err
	}
	p := &imageFolder{path: path, files: files, frame: f, read: &s.read, images: &s.images}
	p.largest = sync.OnceValue(p.largestImage)
	if s.only = p; len(files) > 0 {
		return s, nil
	}
	if st, err := os.Stat(o.Labels); err == nil && st.Mode().IsRegular() {
		return s, fmt.Errorf("%s: the images have two labels: the names of their folders, and those in %s; put the "+
			"images into one folder, or leave out --labels", path, o.Labels)
	}
	numbers, classes, err := o.numberClasses(path, folders.names())
	if err != nil {
		return s, err
	}
	var labels []int64
	for i, folder := range folders {
		for _, name := range folder.files {
			p.files = append(p.files, filepath.Join(folder.name, name))
			labels = append(labels, numbers[i])
		}
	}
	s.labels, s.classes = inMemory(path, labels), classes
	return s, nil
}

func (p *imageFolder) rows() int64 { return int64(len(p.files)) }

func (p *imageFolder) row() ir.Spec {
	f := p.frame
	shape := []int64{f.channels, f.height, f.width}
	if f.last {
		shape = []int64{f.height, f.width, f.channels}
	}
	return ir.Spec{Name: p.path, DType: ir.Uint8, Shape: shape}
}

// held counts the images, a scaled one with four channels, and a decoded file.
func (p *imageFolder) held(n int64) int64 {
	return n*p.row().Bytes() + p.frame.scaledBytes() + p.largest()
}

func (p *imageFolder) transient(int64) int64 { return p.largest() }

// maxHeaders bounds the number of files whose headers are read for the size of the largest image.
const maxHeaders = 10_000

// largestImage reads the headers of the files; of more than maxHeaders that of every k-th one. Errors are reported when
// a file is decoded.
func (p *imageFolder) largestImage() (most int64) {
	for i := 0; i < len(p.files); i += (len(p.files) + maxHeaders - 1) / maxHeaders {
		if size, err := p.size(filepath.Join(p.path, p.files[i])); err == nil {
			const weight = 4 * 8 // bytes of a pixel that is scaled in one direction
			most = max(most, decodedBytes(size)+weight*p.frame.width*int64(size.Height))
		}
	}
	return most
}

// size reads the header of a file.
func (p *imageFolder) size(path string) (image.Config, error) {
	f, err := openFile(path)
	if err != nil {
		return image.Config{}, err
	}
	defer f.Close()
	c, err := codecOf(f)
	if err != nil {
		return image.Config{}, err
	}
	return c.config(f.reader(0))
}

func (p *imageFolder) random(string) error { return nil }

func (p *imageFolder) load(index []int, to *buffers) (func() (*ir.Array, error), error) {
	return func() (*ir.Array, error) {
		row := p.row()
		a := to.array(ir.Uint8, append([]int64{int64(len(index))}, row.Shape...)...)
		scaled := to.bytes(p.frame.scaledBytes())
		for i, at := range index {
			if err := p.decode(filepath.Join(p.path, p.files[at]), a.Data[int64(i)*row.Bytes():][:row.Bytes()],
				scaled); err != nil {
				return nil, err
			}
		}
		return a, nil
	}, nil
}

// decode decodes a file after checking its size, and writes the image, which it scales in scratch.
func (p *imageFolder) decode(path string, to, scratch []byte) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	f.read = p.read
	c, err := codecOf(f)
	if err != nil {
		return err
	}
	size, err := c.config(f.reader(0))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if int64(size.Width)*int64(size.Height) > maxPixels {
		return fmt.Errorf("%s: %d×%d pixels are too many; the maximum is %d", path, size.Width, size.Height, maxPixels)
	}
	bytes := decodedBytes(size)
	p.images.Add(bytes)
	defer p.images.Add(-bytes)
	m, err := c.decode(f.reader(0))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	p.frame.draw(to, scratch, m)
	return nil
}

// decodedBytes is the memory of an image: at most 3 bytes per pixel in YCbCr, 4 or 8 with opacity.
func decodedBytes(c image.Config) int64 {
	pixels := int64(c.Width) * int64(c.Height)
	switch c.ColorModel {
	case color.GrayModel:
		return pixels
	case color.Gray16Model:
		return 2 * pixels
	case color.YCbCrModel:
		return 3 * pixels
	case color.RGBA64Model, color.NRGBA64Model:
		return 8 * pixels
	}
	if _, ok := c.ColorModel.(color.Palette); ok {
		return pixels
	}
	return 4 * pixels
}

// scaledBytes is the size of a scaled image with four channels, in bytes.
func (f frame) scaledBytes() int64 { return 4 * f.height * f.width }

// draw scales m to the frame by bilinear interpolation and writes its channels. scratch has the size of scaled.
func (f frame) draw(to, scratch []byte, m image.Image) {
	scaled := &image.RGBA{Pix: scratch, Stride: 4 * int(f.width), Rect: image.Rect(0, 0, int(f.width), int(f.height))}
	// Otherwise transparent pixels would be mixed as black.
	m = opaque(m)
	draw.BiLinear.Scale(scaled, scaled.Rect, m, m.Bounds(), draw.Src, nil)
	area := int(f.height * f.width)
	for i := range area {
		px := scaled.Pix[4*i:]
		if f.channels == 1 {
			to[i] = luma(px)
			continue
		}
		for c := range 3 {
			if f.last {
				to[3*i+c] = px[c]
			} else {
				to[c*area+i] = px[c]
			}
		}
	}
}
