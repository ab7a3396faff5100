package dataset

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/webp"
)

// A codec decodes images of one format, which is recognized by its first bytes.
type codec struct {
	name   string
	ends   []string          // usual extensions
	is     func([]byte) bool // of the first bytes
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error) // nil for a format that is recognized and not supported
}

func codecs() []codec {
	magic := func(texts ...string) func([]byte) bool {
		return func(head []byte) bool {
			return slices.ContainsFunc(texts, func(text string) bool { return bytes.HasPrefix(head, []byte(text)) })
		}
	}
	return []codec{
		{"PNG", []string{".png"}, magic("\x89PNG\r\n\x1a\n"), png.DecodeConfig, png.Decode},
		{"JPEG", []string{".jpg", ".jpeg"}, magic("\xff\xd8\xff"), jpeg.DecodeConfig, jpeg.Decode},
		{"WebP", []string{".webp"}, func(head []byte) bool {
			// The four bytes between are the size of the file.
			return len(head) == imageHead && magic("RIFF")(head) && string(head[8:]) == "WEBP"
		}, webp.DecodeConfig, webp.Decode},
		{"GIF", []string{".gif"}, magic("GIF87a", "GIF89a"), nil, nil},
		{"TIFF", []string{".tif", ".tiff"}, magic("II*\x00", "MM\x00*"), nil, nil},
		{"BMP", []string{".bmp"}, func(head []byte) bool {
			return magic("BM")(head) && len(head) == imageHead && bytes.Equal(head[6:10], make([]byte, 4))
		}, nil, nil},
	}
}

// imageHead is the number of bytes by which formats are recognized.
const imageHead = 12

// codecOf is the codec of a file by its content: a PNG whose name ends in .jpg is a PNG.
func codecOf(f *content) (codec, error) {
	head := f.head(imageHead)
	i := slices.IndexFunc(codecs(), func(c codec) bool { return c.is(head) })
	switch {
	case i < 0:
		return codec{}, fmt.Errorf("%s: not an image; PNG, JPEG and WebP are supported", f.name)
	case codecs()[i].decode == nil:
		return codec{}, fmt.Errorf("%s: a %s image is not supported; PNG, JPEG and WebP are", f.name, codecs()[i].name)
	}
	return codecs()[i], nil
}

// imagesIn are the names of the images in a folder, and of its folders, both sorted. Files with an extension of images
// are not opened: one that is no image is an error when it is decoded. Others are images by their first bytes.
func imagesIn(path string) (images, folders []string, err error) {
	var ends []string
	for _, c := range codecs() {
		ends = append(ends, c.ends...)
	}
	entries, folders, err := visible(path)
	for _, e := range entries {
		if slices.Contains(ends, strings.ToLower(filepath.Ext(e.Name()))) || isImageFile(filepath.Join(path, e.Name())) {
			images = append(images, e.Name())
		}
	}
	return images, folders, err
}

// isImageFile reports whether the regular file at path begins like an image.
func isImageFile(path string) bool {
	f, err := openFile(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := f.head(imageHead)
	return slices.ContainsFunc(codecs(), func(c codec) bool { return c.is(head) })
}

// A classFolder is a folder with the images of a class.
type classFolder struct {
	name  string
	files []string
}

type classFolders []classFolder

func (c classFolders) names() []string {
	var names []string
	for _, f := range c {
		names = append(names, f.name)
	}
	return names
}

// imageClasses are the folders with images in a folder, which are the classes of its images; none if the images are not
// in folders. Images that would be left out are an error: those beside the folders of classes, and those deeper than
// them.
func imageClasses(path string) (classFolders, error) {
	files, folders, err := imagesIn(path)
	if err != nil {
		return nil, err
	}
	var classes classFolders
	var deeper []string // folders whose images are in folders
	for _, name := range folders {
		images, below, err := imagesIn(filepath.Join(path, name))
		if err != nil {
			return nil, err
		}
		if len(images) > 0 {
			classes = append(classes, classFolder{name, images})
			continue
		}
		for _, folder := range below {
			if images, _, err := imagesIn(filepath.Join(path, name, folder)); err == nil && len(images) > 0 {
				deeper = append(deeper, filepath.Join(name, folder))
			}
		}
	}
	switch {
	case len(classes) > 0 && len(files) > 0:
		return nil, fmt.Errorf("%s: images in the folder itself (%s) and in its folders (%s); give a folder of images, "+
			"or one of a folder for each class", path, someOf(files), someOf(classes.names()))
	case len(classes) > 0 && len(deeper) > 0:
		return nil, fmt.Errorf("%s: images in %s are too deep; those of a class must be in its folder itself, as in %s", path,
			someOf(deeper), someOf(classes.names()))
	}
	return classes, nil
}

// opaque is m without its transparency: the colours of the pixels are those of the file, as Pillow's convert("RGB") has
// them. It may change m.
func opaque(m image.Image) image.Image {
	const full = 0xff
	switch m := m.(type) {
	case *image.NRGBA:
		for i := 3; i < len(m.Pix); i += 4 {
			m.Pix[i] = full
		}
	case *image.NRGBA64:
		for i := 6; i < len(m.Pix); i += 8 {
			// Opacity is the last of four values of two bytes.
			m.Pix[i], m.Pix[i+1] = full, full
		}
	case *image.NYCbCrA:
		return &m.YCbCr
	case *image.Paletted:
		palette := slices.Clone(m.Palette)
		for i, c := range palette {
			n := color.NRGBAModel.Convert(c).(color.NRGBA)
			if c, ok := c.(color.NRGBA); ok {
				n = c // a conversion loses the colours of transparent entries
			}
			palette[i] = color.RGBA{n.R, n.G, n.B, full}
		}
		m.Palette = palette
	}
	return m
}

// luma is the grey of an opaque pixel: ITU-R BT.601 in 16 bits, rounded, as in Pillow's convert("L").
func luma(px []byte) byte {
	return byte((19595*uint32(px[0]) + 38470*uint32(px[1]) + 7471*uint32(px[2]) + 1<<15) >> 16)
}
