package dataset

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func tokenInput(axis ir.Dim) []Input {
	return []Input{{Name: "input_ids", Type: &ir.Type{Elem: ir.Int64, Shape: []ir.Dim{{N: -1}, axis}}}}
}

// Streams of tokens of any width are cut into samples of the model's length, and the rest is left out.
func TestTokenFilesAreCutIntoSamples(t *testing.T) {
	const count = 13
	var short, wide []byte
	for i := range uint32(count) {
		short = binary.LittleEndian.AppendUint16(short, uint16(1000+i))
		wide = binary.LittleEndian.AppendUint32(wide, 1000+i)
	}
	files := map[string][]byte{"short.bin": short, "wide.bin": wide, "short.npy": append(NPYHeader("<u2", []int64{count}),
		short...), "wide.npy": append(NPYHeader("<u4", []int64{count}), wide...)}
	for name, content := range files {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		for _, o := range []struct {
			axis ir.Dim
			dims map[string]int64
		}{{ir.Dim{N: 5}, nil}, {ir.Dim{N: -1, Param: "sequence"}, map[string]int64{"sequence": 5}}} {
			s, err := Open(path, tokenInput(o.axis), nil, Options{Dims: o.dims})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var got []string
			for b, err := range s.Sequences(t.Context(), Order{Size: 2}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprint(ir.View[int64](b.Inputs["input_ids"]), b.Targets))
			}
			if want := "[1000 1001 1002 1003 1004 1005 1006 1007 1008 1009] [[1001 1002 1003 1004] [1006 1007 " +
				"1008 1009]]"; strings.Join(got, " ") != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := Open(path, tokenInput(ir.Dim{N: 14}), nil, Options{}); err == nil ||
			!strings.Contains(err.Error(), "13 tokens are fewer than the 14 of a sample") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestTextsAndOddTokenFilesAreErrors(t *testing.T) {
	for name, want := range map[string]string{"a.txt": "texts are not tokenized",
		"a.bin": "3 bytes are no tokens of 16 or 32 bits"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte("abc"), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, tokenInput(ir.Dim{N: 5}), nil, Options{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
