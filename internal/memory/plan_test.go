package memory

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// blocks draws blocks with many adjacent lifetimes and many equal sizes.
func blocks(t *rapid.T) []Block {
	steps := rapid.IntRange(1, 40).Draw(t, "steps")
	bytes := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 1<<20),
		rapid.SampledFrom([]int64{0, 63, 64, 65, 4096}))
	n := rapid.IntRange(0, 60).Draw(t, "n")
	bs := make([]Block, n)
	for i := range bs {
		first := rapid.IntRange(0, steps-1).Draw(t, "first")
		bs[i] = Block{
			Name: fmt.Sprint("b", i), Kind: Kind(rapid.IntRange(0, int(kinds)-1).Draw(t, "kind")),
			Bytes: bytes.Draw(t, "bytes"),
			First: first, Last: rapid.IntRange(first, steps-1).Draw(t, "last"),
		}
	}
	return bs
}

func place(t interface{ Fatal(...any) }, bs []Block) *Plan {
	p, err := Place(bs)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPlanIsValid compares all pairs of blocks of a plan.
func TestPlanIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := place(t, blocks(t))
		if err := p.Verify(); err != nil {
			t.Fatal(err)
		}
		for i, a := range p.Blocks {
			if p.Offsets[i]%Align != 0 || p.Offsets[i] < 0 || p.Offsets[i]+a.Bytes > p.Size {
				t.Fatalf("%+v at %d of %d", a, p.Offsets[i], p.Size)
			}
			for j, b := range p.Blocks[:i] {
				together := a.First <= b.Last && b.First <= a.Last
				distant := p.Offsets[i]+a.Bytes <= p.Offsets[j] || p.Offsets[j]+b.Bytes <= p.Offsets[i]
				if together && !distant && a.Bytes > 0 && b.Bytes > 0 {
					t.Fatalf("%+v at %d and %+v at %d", a, p.Offsets[i], b, p.Offsets[j])
				}
			}
		}
	})
}

func TestBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := place(t, blocks(t))
		var want int64
		for step := range 40 {
			var n int64
			for _, b := range p.Blocks {
				if b.First <= step && step <= b.Last {
					n += (b.Bytes + 63) &^ 63
				}
			}
			want = max(want, n)
		}
		if p.Bound != want || p.Size < want {
			t.Fatalf("got bound %d, size %d, want bound %d and no smaller size", p.Bound, p.Size, want)
		}
	})
}

func TestPlanDoesNotDependOnTheOrderOfBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bs := blocks(t)
		p := place(t, bs)
		q := place(t, rapid.Permutation(bs).Draw(t, "permuted"))
		if p.Size != q.Size || !maps.Equal(byName(p), byName(q)) {
			t.Fatalf("got %v of %d bytes, and permuted %v of %d", byName(p), p.Size, byName(q), q.Size)
		}
	})
}

func byName(p *Plan) map[string]int64 {
	m := map[string]int64{}
	for i, b := range p.Blocks {
		m[b.Name] = p.Offsets[i]
	}
	return m
}

// TestArenasOfNetworks checks that the arena of a forward pass has the minimum size, and that of a training step nearly
// so.
func TestArenasOfNetworks(t *testing.T) {
	var sum float64
	all := nets()
	for name, bs := range all {
		p := place(t, bs)
		if err := p.Verify(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		sum += float64(p.Size) / float64(p.Bound)
		if f := p.Fragmentation(); f > 0.1 {
			t.Errorf("%s: got an arena %.1f %% larger than its bound, want at most 10 %%", name, 100*f)
		}
	}
	if mean := sum / float64(len(all)); mean > 1.02 {
		t.Errorf("got %.3f times the bound on average over %d networks, want at most 1.02", mean, len(all))
	}
}

func TestArenasOfRandomLifetimes(t *testing.T) {
	p := place(t, random(3000, 100))
	if f := p.Fragmentation(); f > 0.1 {
		t.Errorf("got an arena %.1f %% larger than its bound, want at most 10 %%", 100*f)
	}
}

func TestDistantSteps(t *testing.T) {
	p := place(t, []Block{{"a", Activation, 100, 0, 1 << 40}, {"b", Activation, 100, 1 << 40, math.MaxInt - 1},
		{"c", Scratch, 10, 5, 6}})
	if err := p.Verify(); err != nil || p.Size != 256 {
		t.Errorf("got %d bytes, %v, want 256", p.Size, err)
	}
}

func TestPlanWithoutBlocks(t *testing.T) {
	for _, bs := range [][]Block{nil, {{"empty", Activation, 0, 3, 9}}} {
		p := place(t, bs)
		if p.Size != 0 || p.Bound != 0 || p.Fragmentation() != 0 || p.Verify() != nil {
			t.Errorf("%v: got %+v", bs, p)
		}
	}
}

func TestInvalidBlocks(t *testing.T) {
	huge := Block{"huge", Activation, math.MaxInt64 - 200, 0, 0}
	for want, bs := range map[string][]Block{
		`"negative": -1 bytes`:                           {{"negative", Activation, -1, 0, 0}},
		`"backwards": lives from step 3 to step 2`:       {{"backwards", Activation, 1, 3, 2}},
		`"early": lives from step -1 to step 2`:          {{"early", Activation, 1, -1, 2}},
		`"kind": unknown kind 99`:                        {{"kind", 99, 1, 0, 0}},
		`"more": its 200 bytes are more`:                 {huge, {"more", Activation, 200, 1, 1}},
		`"eternal": lives from step 0 to step 922337203`: {{"eternal", Activation, 1, 0, math.MaxInt}},
	} {
		if _, err := Place(bs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Place: got %v, want %s", err, want)
		}
		if _, err := NewTimeline(bs, 10); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewTimeline: got %v, want %s", err, want)
		}
	}
}

func TestVerifyErrors(t *testing.T) {
	bs := []Block{{"a", Activation, 100, 0, 1}, {"b", Activation, 64, 1, 2}, {"c", Activation, 64, 2, 3}}
	for _, c := range []struct {
		offsets []int64
		size    int64
		want    string
	}{
		{[]int64{0, 128, 0}, 192, ""},
		{[]int64{0, 64, 0}, 192, `blocks "a" and "b" overlap at step 1`},
		{[]int64{64, 0, 0}, 192, `blocks "b" and "c" overlap at step 2`},
		{[]int64{0, 128, 32}, 192, `block "c": 64 bytes at offset 32`},
		{[]int64{0, 128, -64}, 192, `block "c": 64 bytes at offset -64`},
		{[]int64{0, 192, 0}, 192, `block "b": 64 bytes at offset 192 of an arena of 192`},
		{[]int64{0, 128}, 192, "2 offsets for 3 blocks"},
	} {
		p := &Plan{Blocks: bs, Offsets: c.offsets, Size: c.size}
		err := p.Verify()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: got %v, want %q", c.offsets, err, c.want)
		}
	}
}

// TestVerifyFindsEveryOverlap moves one block of a plan and compares pair by pair.
func TestVerifyFindsEveryOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := place(t, blocks(t))
		if len(p.Blocks) == 0 {
			return
		}
		moved := rapid.IntRange(0, len(p.Blocks)-1).Draw(t, "moved")
		p.Offsets[moved] = Align * rapid.Int64Range(0, p.Size/Align).Draw(t, "to")
		m := p.Blocks[moved]
		wrong := p.Offsets[moved]+m.Bytes > p.Size
		for j, b := range p.Blocks {
			together := j != moved && m.Bytes > 0 && b.Bytes > 0 && m.First <= b.Last && b.First <= m.Last
			wrong = wrong || together && p.Offsets[moved] < p.Offsets[j]+b.Bytes &&
				p.Offsets[j] < p.Offsets[moved]+m.Bytes
		}
		if err := p.Verify(); (err != nil) != wrong {
			t.Fatalf("got %v, want an error: %v", err, wrong)
		}
	})
}

func BenchmarkPlace(b *testing.B) {
	for name, bs := range map[string][]Block{
		"residual/10000":     residual(64, 60, 40)[:10000],
		"transformer/10000":  transformer(128, 768, 12, 600)[:10000],
		"transformer/100000": transformer(128, 768, 12, 6000)[:100000],
		"training/10000":     training(transformer(128, 768, 12, 300)),
		"random/10000":       random(10000, 100),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Place(bs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestKindsHaveNames(t *testing.T) {
	var names []string
	for k := range kinds {
		text, err := k.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, string(text))
	}
	if got, want := names, []string{"weight", "state", "gradient", "activation", "recomputed",
		"scratch"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
