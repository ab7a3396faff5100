package dataset

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// Pictures of every form have the pixels of Pillow, as testdata/pictures.py recorded them: without transparency, and
// not turned by the orientation in their EXIF data.
func TestPicturesArePillows(t *testing.T) {
	files, err := os.ReadDir("testdata/pictures")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := f.Name()
		dir := t.TempDir()
		data, err := os.ReadFile(filepath.Join("testdata/pictures", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), data)
		for _, of := range []struct {
			form, input string
			close       int // levels between both
		}{
			{".rgb", "uint8[n,16,24,3]", 0}, {".grey", "uint8[n,16,24,1]", 0}, {".half", "uint8[n,8,12,3]", 1},
			{".double", "uint8[n,32,48,3]", 1},
		} {
			got := all(t, mustOpen(t, dir, inputs(input("x", of.input)), nil, Options{}), Order{})[0].Inputs["x"].Data
			want := recorded(t, "testdata/pictures.npz", name+of.form)
			most := 0
			for i := range got {
				most = max(most, int(got[i])-int(want[i]), int(want[i])-int(got[i]))
			}
			if most > of.close+lossy(data) {
				t.Errorf("%s%s: %d levels from Pillow's", name, of.form, most)
			}
		}
	}
}

// lossy is the number of levels between decoders of a format: JPEG and lossy WebP leave the rounding of the transform,
// and the upsampling of chroma, to the decoder.
func lossy(data []byte) int {
	const levels = 8
	if bytes.HasPrefix(data, []byte("\xff\xd8")) || bytes.Contains(data[:min(len(data), 64)], []byte("VP8 ")) ||
		bytes.Contains(data, []byte("ALPH")) {
		return levels
	}
	return 0
}

// recorded is an array of bytes in an archive.
func recorded(t *testing.T, archive, name string) []byte {
	t.Helper()
	s, err := openNPZ(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	c, err := s.open(name)
	if err != nil || c == nil {
		t.Fatalf("%s: %v", name, err)
	}
	index := make([]int, c.rows())
	for i := range index {
		index[i] = i
	}
	read, err := c.load(index, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := read()
	if err != nil {
		t.Fatal(err)
	}
	return ir.View[uint8](a)
}
