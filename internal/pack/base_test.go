package pack

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// model is a file of tensors of a type with the names.
func model(t ir.DType, content map[string][]byte, names ...string) []File {
	var b []byte
	var tensors []Tensor
	for _, name := range names {
		b = append(b, "header"...)
		tensors = append(tensors,
			Tensor{ir.Spec{Name: name, DType: t, Shape: []int64{int64(len(content[name])) * 8 / t.Bits()}}, int64(len(b))})
		b = append(b, content[name]...)
	}
	return []File{{Name: "m.onnx", Size: int64(len(b)), R: bytes.NewReader(b), Tensors: tensors}}
}

// A model takes only what changed since its base: a tensor of the same name by its differences, one of another name by
// its content.
func TestDifferencesFromBase(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, dtype := range []ir.DType{ir.Float, ir.Float16, ir.Int8, ir.Double} {
		raw := make([]byte, 2_000_000)
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		tuned, width := bytes.Clone(raw), int(dtype.Bits()/8)
		for i := 0; i < len(raw); i += 16 {
			put(tuned, i, width, element(raw, i, width)+uint64(r.IntN(5))-2)
		}
		base := model(dtype, map[string][]byte{"w": raw, "old": raw[:50_000]}, "old", "w")
		files := model(dtype, map[string][]byte{"w": tuned, "new": raw[:50_000]}, "w", "new")
		b, index := packed(t, files, Options{Workers: 2, Base: base})
		if len(b) > len(raw)/6 || len(index.Tensors) != 2 {
			t.Errorf("%s: %d bytes, %v", dtype, len(b), index.Tensors)
		}
		got := &output{}
		open := func(FileInfo) (Output, error) { return got, nil }
		if _, err := Read(context.Background(), bytes.NewReader(b), "m.mcz", open,
			Options{Workers: 2, Base: base}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), content(t, files[0])) {
			t.Errorf("%s: content differs", dtype)
		}
		for _, other := range [][]File{nil, files} {
			_, err := Read(context.Background(), bytes.NewReader(b), "m.mcz", open, Options{Base: other})
			if e := (*BaseError)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), "from base m.onnx (sha256:") {
				t.Errorf("another base: got %v", err)
			}
		}
		if _, err := Open(bytes.NewReader(b), int64(len(b)), "m.mcz"); err == nil {
			t.Error("an archive is opened without its base")
		}
	}
}

// A pruned model takes little more than the entropy of its mask, whatever its weights are.
func TestPrunedModelTakesItsMask(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for _, dtype := range []ir.DType{ir.Float, ir.BFloat16, ir.Int8, ir.Int4} {
		raw, width := make([]byte, 1<<20), max(1, int(dtype.Bits()/8))
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		pruned, elems := bytes.Clone(raw), int64(0)
		for i := 0; i < len(raw); i += width {
			if dtype.Bits() == 4 {
				pruned[i] &= []byte{0, 15, 15, 255}[r.IntN(4)]
			} else if r.IntN(2) == 0 {
				clear(pruned[i : i+width])
			}
			elems += 8 / min(8, dtype.Bits())
		}
		base, files := model(dtype, map[string][]byte{"w": raw}, "w"), model(dtype, map[string][]byte{"w": pruned}, "w")
		b, index := packed(t, files, Options{Workers: 2, Base: base})
		if int64(len(b)) > elems/8*101/100+1000 {
			t.Errorf("%s: %d bytes for a mask of %d: %v", dtype, len(b), elems/8, index.Tensors)
		}
		got := &output{}
		open := func(FileInfo) (Output, error) { return got, nil }
		if _, err := Read(context.Background(), bytes.NewReader(b), "m.mcz", open,
			Options{Workers: 2, Base: base}); err != nil || !bytes.Equal(got.Bytes(), content(t, files[0])) {
			t.Errorf("%s: %v", dtype, err)
		}
	}
}

// Every element is restored, from every element of the base.
func TestEveryDifference(t *testing.T) {
	for b := range 256 {
		src, base, got := make([]byte, 256), bytes.Repeat([]byte{byte(b)}, 256), make([]byte, 256)
		for i := range src {
			src[i] = byte(i)
		}
		for name, f := range map[string]struct{ from, to func() }{
			"bytes":   {func() { differencesFrom(got, src, base, 1) }, func() { restoreFrom(got, base, 1) }},
			"nibbles": {func() { differencesFrom4(got, src, base) }, func() { restoreFrom4(got, base) }},
		} {
			if f.from(); name == "bytes" && (got[b] != 0 || b != 0 && got[0] != 1) {
				t.Errorf("base %d: the same is %d, zero is %d", b, got[b], got[0])
			}
			if f.to(); !bytes.Equal(got, src) {
				t.Errorf("%s, base %d: got %v", name, b, got)
			}
		}
	}
}

// A place outside of the base is an error.
func TestPlaceOutsideOfBase(t *testing.T) {
	base := model(ir.Int8, map[string][]byte{"w": make([]byte, 2000)}, "w")
	for _, at := range []stretch{{file: 1}, {offset: 1500}, {offset: -1}} {
		if _, err := readBase(base, make([]byte, 1000), at.append(nil)); !errors.Is(err, errPlace) {
			t.Errorf("%v: got %v", at, err)
		}
	}
	record := header{kind: dataRecord, form: form{baseValue, 1, planes}, packed: placeSize, raw: 1000}
	b := append(binary.LittleEndian.AppendUint32([]byte(magic), version), func() []byte {
		b, _ := encodeJSON(headRecord, head{Files: []FileInfo{{Name: "m", Size: 1000}}})
		return b
	}()...)
	b = append(record.append(b), make([]byte, placeSize)...)
	if _, err := unpacked(b, 1); !errors.Is(err, errPlace) {
		t.Errorf("no base: got %v", err)
	}
}
