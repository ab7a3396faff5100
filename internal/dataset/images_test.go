package dataset

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func pngOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// drawn is an image of these pixels.
func drawn(width, height int, at func(x, y int) color.Color) image.Image {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.Set(x, y, at(x, y))
		}
	}
	return m
}

// An image of the model's size is copied pixel for pixel, in the model's layout.
func TestImagesOfModelSize(t *testing.T) {
	at := func(x, y int) color.Color { return color.NRGBA{uint8(10 * x), uint8(20 * y), 200, 255} }
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.PNG"), pngOf(t, drawn(3, 2, at)))
	red, green := []float32{0, 10, 20, 0, 10, 20}, []float32{0, 0, 0, 20, 20, 20}
	blue := slices.Repeat([]float32{200}, 6)
	var last []float32
	for i := range red {
		last = append(last, red[i], green[i], blue[i])
	}
	for _, tt := range []struct {
		typ  string
		o    Options
		want []float32
	}{
		{"float[n,3,2,3]", Options{}, slices.Concat(red, green, blue)},
		{"float[n,2,3,3]", Options{}, last},
		{"float[3,2,3]", Options{}, slices.Concat(red, green, blue)},
		{"float[n,c,h,w]", Options{Reshape: []int64{3, 2, 3}}, slices.Concat(red, green, blue)},
		{"float[n,3,h,w]", Options{Dims: map[string]int64{"h": 2, "w": 3}}, slices.Concat(red, green, blue)},
	} {
		b := all(t, mustOpen(t, dir, inputs(input("x", tt.typ)), nil, tt.o), Order{})[0]
		if got := ir.View[float32](b.Inputs["x"]); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.typ, got, tt.want)
		}
	}
	// Luma of ITU-R BT.601, rounded to nearest.
	b := all(t, mustOpen(t, dir, inputs(input("x", "uint8[n,1,2,3]")), nil, Options{}), Order{})[0]
	for i, got := range b.Inputs["x"].Data {
		if want := 0.299*red[i] + 0.587*green[i] + 0.114*blue[i]; math.Abs(float64(got)-float64(want)) > 1 {
			t.Errorf("grey pixel %d is %d, want %v", i, got, want)
		}
	}
}

// The memory of decoded images is at least that of their pixels, and counts while images are decoded only.
func TestMemoryOfImages(t *testing.T) {
	r := image.Rect(0, 0, 8, 4)
	for _, tt := range []struct {
		m    image.Image
		want int64
	}{
		{image.NewGray(r), 32}, {image.NewGray16(r), 64}, {image.NewNRGBA(r), 128}, {image.NewNRGBA64(r), 256},
		{image.NewPaletted(r, color.Palette{color.Black}), 32},
		{image.NewYCbCr(r, image.YCbCrSubsampleRatio444), 96}, {image.NewCMYK(r), 128},
	} {
		if got := decodedBytes(image.Config{ColorModel: tt.m.ColorModel(), Width: 8, Height: 4}); got != tt.want {
			t.Errorf("%T: %d bytes, want %d", tt.m, got, tt.want)
		}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.png"), pngOf(t, image.NewGray(r)))
	s := mustOpen(t, dir, inputs(input("x", "uint8[n,1,4,8]")), nil, Options{})
	images := &s.feed.(*table).samples.images
	images.Store(1000)
	for range s.Batches(t.Context(), Order{}) {
		if held := s.InMemory(); held != 1000+32 {
			t.Errorf("%d bytes in memory", held)
		}
	}
}

// Bilinear scaling preserves a ramp, up and down.
func TestImagesAreScaled(t *testing.T) {
	for _, width := range []int{13, 48, 200} {
		ramp := drawn(width, 20, func(x, _ int) color.Color { return color.Gray{uint8(255 * x / width)} })
		dir := t.TempDir()
		write(t, filepath.Join(dir, "a.png"), pngOf(t, ramp))
		b := all(t, mustOpen(t, dir, inputs(input("x", "uint8[n,40,50,1]")), nil, Options{}), Order{})[0]
		x := b.Inputs["x"]
		sameShape(t, x, 1, 40, 50, 1)
		margin := max(2, 50/width) // the ramp ends at the edges
		for at := margin; at < 50-margin; at++ {
			// Position of the center of pixel at in the image.
			from := (float64(at)+0.5)*float64(width)/50 - 0.5
			if got, want := float64(x.Data[20*50+at]), 255*from/float64(width); math.Abs(got-want) > 2 {
				t.Errorf("%d wide, pixel %d: %v, want %v", width, at, got, want)
			}
		}
	}
}

// Hidden folders, folders without images, and files that are no images do not number the classes; a link to a folder is
// one.
func TestFoldersThatAreNoClasses(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	image := pngOf(t, drawn(4, 4, func(int, int) color.Color { return color.White }))
	for _, name := range []string{"cat/1.png", "cat/.hidden.png", "dog/1", ".ipynb_checkpoints/2.png"} {
		write(t, filepath.Join(dir, name), image)
	}
	write(t, filepath.Join(other, "3.JPG"), image)
	write(t, filepath.Join(dir, "about/readme.txt"), []byte("no image"))
	write(t, filepath.Join(dir, "dog/notes.txt"), []byte("no image"))
	if err := os.Mkdir(filepath.Join(dir, "aaa"), 0o755); err != nil {
		t.Fatal(err)
	}
	want := []string{"cat", "dog"}
	if err := os.Symlink(other, filepath.Join(dir, "zebra")); err == nil {
		want = append(want, "zebra")
	}
	s := mustOpen(t, dir, inputs(input("x", "uint8[n,3,4,4]")), nil, Options{})
	if !slices.Equal(s.ClassNames(), want) || s.Len() != len(want) {
		t.Errorf("%d images of classes %q, want one of each of %q", s.Len(), s.ClassNames(), want)
	}
	if names, err := ClassNames(dir, Options{}); err != nil || !slices.Equal(names, want) {
		t.Errorf("classes %q, want %q: %v", names, want, err)
	}
}

// Images that would be left out are an error.
func TestImagesAtTwoDepths(t *testing.T) {
	image := pngOf(t, drawn(4, 4, func(int, int) color.Color { return color.White }))
	for _, tt := range []struct{ files, want []string }{
		{[]string{"cat/1.png", "overview.png"}, []string{"overview.png", "cat"}},
		{[]string{"cat/1.png", "dog/small/2.png"}, []string{filepath.Join("dog", "small"), "too deep"}},
		{[]string{"train/cat/1.png", "test/cat/2.png"}, []string{"unknown data format"}},
	} {
		dir := t.TempDir()
		for _, name := range tt.files {
			write(t, filepath.Join(dir, name), image)
		}
		_, err := Open(dir, inputs(input("x", "uint8[n,3,4,4]")), nil, Options{})
		requireError(t, err, tt.want...)
	}
}

// Folders in the folder are classes, in the order of their names.
func TestImageFolders(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"dog/1.png", "cat/9.png", "cat/10.png", "zebra/a.png"} {
		grey := func(int, int) color.Color { return color.Gray{uint8(i)} }
		write(t, filepath.Join(dir, name), pngOf(t, drawn(4, 4, grey)))
	}
	s := mustOpen(t, dir, inputs(input("x", "uint8[n,1,4,4]")), nil, Options{})
	if !slices.Equal(s.ClassNames(), []string{"cat", "dog", "zebra"}) {
		t.Errorf("classes %q", s.ClassNames())
	}
	for _, o := range []Order{{Size: 2}, {Size: 2, Shuffle: true}} {
		for _, b := range all(t, s, o) {
			for i, class := range b.Classes() {
				grey := b.Inputs["x"].Data[16*i]
				if want := []int64{1, 0, 0, 2}[grey]; class != want {
					t.Errorf("image %d is of class %d, want %d", grey, class, want)
				}
			}
		}
	}
}

// Photos are read for a detector in batches of one and for a classifier in any batch size.
func TestSharedPhotos(t *testing.T) {
	in, _ := model(t, "vision/yolox_nano")
	s := mustOpen(t, sharedFile(t, "datasets", "images"), in, nil, Options{})
	bs := all(t, s, Order{Size: 4})
	if len(bs) != 5 {
		t.Fatalf("%d batches", len(bs))
	}
	for _, b := range bs {
		sameShape(t, b.Inputs["images"], 1, 3, 416, 416)
	}
}

func TestInvalidImages(t *testing.T) {
	good := pngOf(t, drawn(2, 2, func(int, int) color.Color { return color.White }))
	huge := slices.Clone(good)
	copy(huge[16:], []byte{0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff}) // width and height
	for _, tt := range []struct {
		name, typ string
		b         []byte
		o         Options
		want      string
	}{
		{"no image", "float[n,3,2,2]", []byte("x"), Options{}, "a.png: not an image"},
		{"another format", "float[n,3,2,2]", []byte("GIF89a..."), Options{}, "a.png: a GIF image is not supported"},
		{"cut off", "float[n,3,2,2]", good[:len(good)-20], Options{}, "a.png"},
		{"a header of 2^62 pixels", "float[n,3,2,2]", huge, Options{}, "a.png"},
		{"a model of vectors", "float[n,12]", good, Options{}, "float[n,12]"},
		{"a model of 4 channels", "float[n,4,2,2]", good, Options{}, "neither 1 nor 3"},
		{"a model of any size", "float[n,3,h,w]", good, Options{}, "--reshape 3,HEIGHT,WIDTH"},
		{"a model of too large a size", "float[n,3,99999,99999]", good, Options{}, "invalid image size"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "a.png"), tt.b)
			s, err := Open(dir, inputs(input("x", tt.typ)), nil, tt.o)
			if err == nil {
				for _, err = range s.Batches(t.Context(), Order{}) {
				}
			}
			requireError(t, err, tt.want)
		})
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.png"), good)
	_, err := Open(dir, inputs(input("x", "float[n,3,2,2]"), input("y", "float[n]")), nil, Options{})
	requireError(t, err, `"x", "y"`, "--fill")
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = Open(filepath.Join(dir, "empty"), inputs(input("x", "float[n,3,2,2]")), nil, Options{})
	requireError(t, err, "unknown data format")
}
