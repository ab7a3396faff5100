package pack

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// sample is a model of two files: tensors of several types between other bytes, two of them equal.
func sample() []File {
	r := rand.New(rand.NewPCG(1, 2))
	var f, external []byte
	var tensors, outside []Tensor
	put := func(to *[]byte, ts *[]Tensor, name string, t ir.DType, n int64, b []byte) {
		*to = append(*to, fmt.Sprintf("header of %s", name)...)
		*ts = append(*ts, Tensor{ir.Spec{Name: name, DType: t, Shape: []int64{n}}, int64(len(*to))})
		*to = append(*to, b...)
	}
	floats := make([]byte, 0, 4*600_000)
	for range 600_000 {
		floats = binary.LittleEndian.AppendUint32(floats, math.Float32bits(float32(r.NormFloat64()*0.02)))
	}
	put(&f, &tensors, "weight", ir.Float, 600_000, floats)
	put(&f, &tensors, "bias", ir.Float, 3, floats[:12])
	var halves, rows, bytes4 []byte
	for i := range 5000 {
		halves = append(halves, floats[4*i+2], floats[4*i+3])
		rows = binary.LittleEndian.AppendUint64(rows, uint64(i*7+r.IntN(7)))
		bytes4 = append(bytes4, byte(8+r.NormFloat64()*2)&15|byte(8+r.NormFloat64()*2)&15<<4)
	}
	put(&f, &tensors, "bf16", ir.BFloat16, 5000, halves)
	put(&f, &tensors, "rows", ir.Int64, 5000, rows)
	put(&external, &outside, "int4", ir.Int4, 10000, bytes4)
	put(&external, &outside, "tied", ir.Float, 600_000, floats)
	put(&external, &outside, "zeros", ir.Double, 400_000, make([]byte, 3_200_000))
	f = append(f, bytes.Repeat([]byte("node "), 50_000)...)
	return []File{
		{Name: "m.onnx", Size: int64(len(f)), R: bytes.NewReader(f), Tensors: tensors},
		{Name: "data/m.bin", Size: int64(len(external)), R: bytes.NewReader(external), Tensors: outside},
	}
}

func packed(t testing.TB, files []File, o Options) ([]byte, *Index) {
	t.Helper()
	var out bytes.Buffer
	index, err := Write(context.Background(), &out, files, o)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), index
}

// An output keeps a file in memory.
type output struct{ bytes.Buffer }

func (o *output) ReadAt(b []byte, off int64) (int, error) {
	return bytes.NewReader(o.Bytes()).ReadAt(b, off)
}

func unpacked(b []byte, workers int) (map[string]*output, error) {
	outs := map[string]*output{}
	_, err := Read(context.Background(), bytes.NewReader(b), "m.mcz", func(f FileInfo) (Output, error) {
		outs[f.Name] = &output{}
		return outs[f.Name], nil
	}, Options{Workers: workers})
	return outs, err
}

func content(t testing.TB, f File) []byte {
	t.Helper()
	b := make([]byte, f.Size)
	if err := ir.ReadFull(f.R, b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestUnpackedFilesAreIdentical(t *testing.T) {
	files := sample()
	b, _ := packed(t, files, Options{Workers: 1})
	for _, workers := range []int{1, 8} {
		if again, _ := packed(t, files, Options{Workers: workers, Memory: 64 << 20}); !bytes.Equal(again, b) {
			t.Errorf("%d workers: other bytes", workers)
		}
		outs, err := unpacked(b, workers)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !bytes.Equal(outs[f.Name].Bytes(), content(t, f)) {
				t.Errorf("%d workers: %s differs", workers, f.Name)
			}
		}
	}
}

func TestIndexHasCodecsAndSizes(t *testing.T) {
	b, index := packed(t, sample(), Options{Workers: 2})
	a, err := Open(bytes.NewReader(b), int64(len(b)), "m.mcz")
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]float64{"weight": 0.86, "bf16": 0.75, "rows": 0.10, "int4": 0.80, "tied": 0.01, "zeros": 0.01}
	for _, x := range index.Tensors {
		t.Logf("%s %s %d of %d", x.Name, x.Codec, index.Packed(x), x.Size)
		if limit, ok := limits[x.Name]; !ok || float64(index.Packed(x)) > limit*float64(x.Size) {
			t.Errorf("%s: %d of %d bytes", x.Name, index.Packed(x), x.Size)
		}
		if at := a.records[x.Chunk].at; b[at] != byte(dataRecord) && b[at] != byte(referenceRecord) {
			t.Errorf("%s: no record at %d", x.Name, at)
		}
		delete(limits, x.Name)
	}
	if len(limits) > 0 {
		t.Errorf("not in the index: %v", limits)
	}
}

// The index of a model without tensors of its own has an empty list: readers of other languages iterate over it.
func TestIndexWithoutTensors(t *testing.T) {
	files := sample()[:1]
	files[0].Size, files[0].Tensors = 100, nil
	_, index := packed(t, files, Options{Workers: 1})
	if text, err := json.Marshal(index); err != nil || !strings.Contains(string(text), `"tensors":[]`) {
		t.Errorf("%s %v", text, err)
	}
}

func TestArchiveReadsAtRandom(t *testing.T) {
	files := sample()
	b, _ := packed(t, files, Options{Workers: 2})
	a, err := Open(bytes.NewReader(b), int64(len(b)), "m.mcz")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i, f := range files {
		want := content(t, f)
		for range 200 {
			off := r.IntN(len(want))
			got := make([]byte, min(r.IntN(3000), len(want)-off))
			if err := ir.ReadFull(a.Member(i), got, int64(off)); err != nil || !bytes.Equal(got, want[off:off+len(got)]) {
				t.Fatalf("%s: %d bytes at %d differ: %v", f.Name, len(got), off, err)
			}
		}
	}
}

// A change of any bit and every truncation are errors, unless the bits have no meaning: then the content is the same.
// Small containers have the coders of bytes, and large ones those of tensors.
func TestChangedContainersAreErrors(t *testing.T) {
	text := sample()[:1]
	text[0].R = bytes.NewReader(content(t, text[0])[2_410_000:2_440_000])
	text[0].Size, text[0].Tensors = 30_000, nil
	for _, c := range []struct {
		files   []File
		changes int
	}{{sample(), 40}, {text, 300}} {
		b, _ := packed(t, c.files, Options{Workers: 2})
		r := rand.New(rand.NewPCG(5, 6))
		for i := range c.changes {
			bad := bytes.Clone(b)
			if i%3 == 0 {
				bad = bad[:r.IntN(len(bad))]
			} else {
				at := r.IntN(len(bad))
				if i%3 == 1 {
					at = r.IntN(400) // magic, head and the first records
				}
				bad[at] ^= 1 << r.IntN(8)
			}
			if outs, err := unpacked(bad, 2); err == nil && (i%3 == 0 || !contains(t, outs, c.files)) {
				t.Fatalf("change %d is not found", i)
			}
		}
	}
}

// contains reports whether outs are files.
func contains(t *testing.T, outs map[string]*output, files []File) bool {
	t.Helper()
	for _, f := range files {
		if outs[f.Name] == nil || !bytes.Equal(outs[f.Name].Bytes(), content(t, f)) {
			return false
		}
	}
	return len(outs) == len(files)
}

func TestHostileContainers(t *testing.T) {
	head := func(files ...FileInfo) []byte {
		record, err := encodeJSON(headRecord, head{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		return append(binary.LittleEndian.AppendUint32([]byte(magic), version), record...)
	}
	record := func(h header, payload ...byte) []byte { return append(h.append(nil), payload...) }
	m := FileInfo{Name: "m.onnx", Size: 1 << 50}
	bomb := header{kind: dataRecord, form: plain, packed: 9, raw: 1 << 20}
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"outside": {head(FileInfo{Name: "../m.onnx", Size: 1}),
			`m.mcz: offset 12: file name "../m.onnx": not a path inside the folder`},
		"twice": {head(m, m), `m.mcz: offset 12: file name "m.onnx": appears twice`},
		"bomb": {append(head(m), record(bomb, 1, 0, 0, 1, 0, 0, 16, 0, 0)...),
			`m.mcz: offset 97: payload of 9 bytes expands to 1048576; the maximum is 1024 times`},
		"long": {append(head(m), record(header{kind: dataRecord, form: plain, packed: 1 << 30, raw: 1 << 20})...),
			`m.mcz: offset 97: payload of 1073741824 bytes for 1048576`},
		"huge": {append(head(m), record(header{kind: dataRecord, form: plain, packed: 1 << 30, raw: 1 << 30})...),
			`m.mcz: offset 97: record of 1073741824 bytes; a valid one has 1 to 1048576`},
		"reference": {append(head(m), record(header{kind: referenceRecord, form: plain, packed: 4, raw: 4}, 0, 0, 0, 0)...),
			`m.mcz: record 0: a reference to no earlier record of its size`},
		"empty":   {head(m), `m.mcz: offset 97: the file is truncated`},
		"onnx":    {[]byte("\x08\x07\x12\x04abcdefgh"), `m.mcz: offset 0: not a packed model`},
		"version": {[]byte(magic + "\x02\x00\x00\x00"), `m.mcz: offset 0: version 2 of the format is not supported`},
	} {
		_, err := unpacked(c.b, 1)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v\nwant %s", name, err, c.want)
		}
		if _, err := Open(bytes.NewReader(c.b), int64(len(c.b)), "m.mcz"); err == nil {
			t.Errorf("%s: Open reports no error", name)
		}
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Write(ctx, &output{}, sample(), Options{Workers: 2}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A small container is never larger than its bytes in one stream of zstd, but for the index, whatever its tensors: here
// they are alike across tensors, which coders of one tensor do not see.
func TestSmallContainersAreCodedAsBytesWhereThatIsSmaller(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	content := make([]byte, 8*4096)
	for i := range 4096 {
		content[i] = byte(random.Uint32())
	}
	for i := 1; i < 8; i++ { // seven copies, of which each differs in one byte
		copy(content[i*4096:], content[:4096])
		content[i*4096+i] ^= 1
	}
	file := File{Name: "a.onnx", Size: int64(len(content)), R: bytes.NewReader(content)}
	for i := range 8 {
		file.Tensors = append(file.Tensors, Tensor{ir.Spec{Name: fmt.Sprint(i), DType: ir.Int8, Shape: []int64{4096}},
			int64(i * 4096)})
	}
	out, index := packed(t, []File{file}, Options{Workers: 1})
	if len(out) > 5500 || len(index.Files) != 1 {
		t.Errorf("%d bytes, index %+v", len(out), index)
	}
	back, err := unpacked(out, 1)
	if err != nil || !bytes.Equal(back["a.onnx"].Bytes(), content) {
		t.Errorf("the content differs: %v", err)
	}
}
