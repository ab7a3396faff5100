package memory

import (
	"testing"

	"pgregory.net/rapid"
)

// Plans of any sequence of sizes are valid, and their blocks have the offsets of the capacity and fit into it.
func TestNextPlanIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bs := blocks(t)
		var capacity *Plan
		for range 10 {
			for i := range bs {
				bs[i].Bytes += rapid.Int64Range(-bs[i].Bytes/10, bs[i].Bytes/10+3).Draw(t, "growth")
			}
			p, next, err := PlaceNext(capacity, append([]Block(nil), bs...))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Verify(); err != nil {
				t.Fatal(err)
			}
			if err := next.Verify(); err != nil {
				t.Fatal(err)
			}
			for i, b := range p.Blocks {
				if b != bs[i] || b.Bytes > next.Blocks[i].Bytes || p.Offsets[i] != next.Offsets[i] {
					t.Fatalf("%+v of %+v at %d, in %+v at %d", b, bs[i], p.Offsets[i], next.Blocks[i], next.Offsets[i])
				}
			}
			capacity = next
		}
	})
}

// Sequences that grow by a token at a time are placed rarely, and the reserve is bounded.
func TestGrowingBlocksAreRarelyPlaced(t *testing.T) {
	at := func(tokens int64) []Block {
		return []Block{{Name: "keys", Bytes: 4096 * tokens, First: 0, Last: 2},
			{Name: "scores", Kind: Scratch, Bytes: 60 + 4*tokens, First: 1, Last: 1},
			{Name: "row", Bytes: 512, First: 2, Last: 3}}
	}
	var capacity *Plan
	placed := 0
	for tokens := int64(128); tokens < 640; tokens++ {
		p, next, err := PlaceNext(capacity, at(tokens))
		if err != nil {
			t.Fatal(err)
		}
		if next != capacity {
			placed++
		}
		if exact := place(t, at(tokens)).Size; p.Size > exact+exact/8+Align {
			t.Errorf("%d tokens: %d bytes, exactly %d", tokens, p.Size, exact)
		}
		capacity = next
	}
	if placed > 30 {
		t.Errorf("placed %d times for 512 tokens", placed)
	}
	large := []Block{{Name: "keys", Bytes: 1 << 30}}
	if _, capacity, _ = PlaceNext(place(t, large),
		[]Block{{Name: "keys", Bytes: 1<<30 + 64}}); capacity.Size != 1<<30+64+maxReserve {
		t.Errorf("1 GiB grows into %d bytes", capacity.Size)
	}
}

// Offsets are not reused if most of the memory would be unused.
func TestSmallBlocksArePlacedAnew(t *testing.T) {
	capacity := place(t, []Block{{Name: "a", Bytes: 1024}, {Name: "b", Bytes: 1024}})
	for bytes, want := range map[int64]int64{1024: 2048, 512: 2048, 448: 896} {
		p, _, err := PlaceNext(capacity, []Block{{Name: "a", Bytes: bytes}, {Name: "b", Bytes: bytes}})
		if err != nil || p.Size != want {
			t.Errorf("two blocks of %d bytes: %+v, %v, want an arena of %d", bytes, p, err, want)
		}
	}
}
