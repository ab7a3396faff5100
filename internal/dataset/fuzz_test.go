package dataset

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
)

// files is the bound of files of data, which may be compressed a thousand times.
var files = oracle.Bound{Memory: 64 << 20, MemoryPerByte: 64 << 10, Time: 5 * oracle.Linear.Time, TimePerByte: oracle.Linear.TimePerByte}

// No image causes a panic, or takes more memory than its pixels.
func FuzzImage(f *testing.F) {
	for _, name := range []string{"grey.jpg", "alpha.webp", "grey-alpha8.png", "cmyk.jpg"} {
		b, err := os.ReadFile(filepath.Join("testdata/pictures", name))
		if err != nil {
			f.Fatal(err)
		}
		hostile.Seed(f, hostile.Some(hostile.Binary(b), 60), string(b))
	}
	dir := f.TempDir()
	in := input("x", "uint8[n,8,8,3]")
	f.Fuzz(func(t *testing.T, b []byte) {
		// A header of a few bytes is that of an image of up to maxPixels, for which memory is taken.
		c := &content{ReaderAt: bytes.NewReader(b), name: "x.png", size: int64(len(b))}
		if of, err := codecOf(c); err == nil {
			if size, err := of.config(bytes.NewReader(b)); err == nil && size.Width > 1000 || size.Height > 1000 {
				return
			}
		}
		files.Check(t, len(b), func() { readAll(t, dir, "x.png", b, in) })
	})
}

// No labels in lines of JSON cause a panic.
func FuzzJSONLabels(f *testing.F) {
	hostile.Seed(f, hostile.Lines(), "1\n2\n", `{"label": "a"}`+"\n"+`{"label": "b"}`, "[1,2]\n[]\n[3]", "[[1,2],[3,4]]\n[[5,6]]", strings.Repeat("[]\n", 5000)+"["+strings.Repeat("1,", 500)+"1]")
	for _, l := range hostile.Some(hostile.JSON(`{"label": [[1, 2], [3, 4]]}`), 100) {
		f.Add([]byte(l.Text + "\n"))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		files.Check(t, len(b), func() {
			c := &content{ReaderAt: bytes.NewReader(b), name: "x.jsonl", size: int64(len(b))}
			labels, err := parseJSONLines(c)
			if err == nil && labels.rows() < 1 {
				t.Errorf("%q has %d labels", b, labels.rows())
			}
		})
	})
}

// No archive of arrays causes a panic, whatever it says about its entries.
func FuzzNPZ(f *testing.F) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"x.npy", "labels.npy"} {
		w, err := z.Create(name)
		if err != nil {
			f.Fatal(err)
		}
		if _, err := w.Write(npy(count[float32](2, 3))); err != nil {
			f.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		f.Fatal(err)
	}
	text := b.String()
	hostile.Seed(f, hostile.Some(hostile.Binary(b.Bytes()), 100), text)
	// The directory at the end decides what is read.
	directory := strings.LastIndex(text, "PK\x01\x02")
	for _, l := range hostile.Some(hostile.Binary([]byte(text[directory:])), 150) {
		f.Add([]byte(text[:directory] + l.Text))
	}
	for _, name := range hostile.Names() {
		if len(name) == len("x.npy") {
			f.Add([]byte(strings.ReplaceAll(text, "x.npy", name)))
		}
	}
	dir := f.TempDir()
	in := input("x", "float[n,3]")
	f.Fuzz(func(t *testing.T, b []byte) {
		files.Check(t, len(b), func() { readAll(t, dir, "x.npz", b, in) })
	})
}
