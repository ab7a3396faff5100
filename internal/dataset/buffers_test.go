package dataset

import (
	"encoding/binary"
	"fmt"
	"image/color"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcompress/mcompress/ir"
)

// reusable are data sets of which every kind of memory of batches is a part: read, moved, converted, dense, decoded,
// derived from tokens, filled, random.
func reusable(t *testing.T) map[string]*Set {
	pictures, tokens := t.TempDir(), []byte{}
	for i := range 7 {
		m := drawn(4+i, 9-i, func(x, y int) color.Color {
			return color.NRGBA{uint8(20 * x), uint8(20 * y), uint8(30 * i), uint8(36 * i)}
		})
		write(t, filepath.Join(pictures, fmt.Sprintf("class%d", i%2), fmt.Sprintf("%d.png", i)), pngOf(t, m))
	}
	for i := range 38 {
		tokens = binary.LittleEndian.AppendUint16(tokens, uint16(500+i))
	}
	arrays := map[string]*ir.Array{"x": count[uint8](7, 4, 5, 3), "labels": count[int32](7), "y": count[float32](7, 2)}
	random, err := Generate(inputs(input("x", "float[2,3]"), input("i", "int32[4]"), input("q", "uint4[3]")),
		Random{Samples: 7})
	if err != nil {
		t.Fatal(err)
	}
	of := func(path string, in, out []Input, o Options) *Set { return mustOpen(t, path, in, out, o) }
	return map[string]*Set{
		"arrays": of(npz(t, false, arrays), inputs(input("x", "float[n,3,4,5]"), input("f", "float16[n,3]")),
			inputs(input("y", "float[n,2]")), Options{Layout: HWC, Scale: 0.5, Fill: map[string]float64{"f": 2}}),
		"images": of(pictures, inputs(input("x", "float[n,3,6,5]")), nil, Options{}),
		"sparse": of(sparseFile(t, "csr", csr()), inputs(input("x", "float[n,4]")), nil, Options{}),
		"tokens": of(file(t, "tokens.bin", tokens),
			inputs(input("input_ids", "int64[n,t]"), input("attention_mask", "int64[n,t]"), input("position_ids", "int64[n,t]")),
			nil, Options{Dims: map[string]int64{"t": 5}}),
		"random": random,
	}
}

// contents copies a batch.
func contents(b *Batch) []string {
	var all []string
	for _, arrays := range []map[string]*ir.Array{b.Inputs, b.Outputs, {"": b.Labels}} {
		for name, a := range arrays {
			if a != nil {
				all = append(all, fmt.Sprint(name, a, a.Data))
			}
		}
	}
	slices.Sort(all)
	return append(all, fmt.Sprint(b.Targets, b.N))
}

// With Reuse, batches are equal to others although the memory is overwritten in between, and no iteration allocates
// more than the first.
func TestReusedBatches(t *testing.T) {
	for name, s := range reusable(t) {
		var want [][]string
		for _, b := range all(t, s, Order{Size: 2}) {
			want = append(want, contents(b))
		}
		s.PoisonReused()
		for _, prefetch := range []int{3, 0} {
			s.opts.Prefetch, s.opts.Loaders = &prefetch, 2
			var held int64
			for pass := range 3 {
				at := 0
				for b, err := range s.Batches(t.Context(), Order{Size: 2, Reuse: true}) {
					if err != nil {
						t.Fatal(err)
					}
					if got := contents(b); !slices.Equal(got, want[at]) {
						t.Errorf("%s: prefetch %d, batch %d is\n%v, want\n%v", name, prefetch, at, got, want[at])
					}
					at++
				}
				if now := s.recycler.held.Load(); now == 0 || pass > 0 && now != held {
					t.Errorf("%s: prefetch %d: %d bytes in pass %d, %d before", name, prefetch, now, pass, held)
				}
				held = s.recycler.held.Load()
			}
			if planned := s.opts.Held(s.BatchBytes(2), 1); prefetch == 3 && s.opts.Fill == nil && name != "tokens" &&
				held > planned {
				t.Errorf("%s: %d bytes are held, %d are planned", name, held, planned)
			}
		}
	}
}

// A batch that is kept after the iteration is overwritten; without Reuse it is not.
func TestKeptBatches(t *testing.T) {
	s := mustOpen(t, numberedFiles(t, 8)["stored"], inputs(input("x", "float[n,3]")), nil, Options{Prefetch: new(int)})
	s.PoisonReused()
	for _, reuse := range []bool{true, false} {
		var kept *Batch
		for b := range s.Batches(t.Context(), Order{Size: 2, Reuse: reuse}) {
			if kept == nil {
				kept = b
			}
		}
		if overwritten := !slices.Equal(kept.Classes(), []int64{0, 1}); overwritten != reuse {
			t.Errorf("reuse %v: the labels of the first batch are %v", reuse, kept.Classes())
		}
	}
}
