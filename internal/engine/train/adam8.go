package train

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// quantizedBlock is the block size of a state; the scale of a block is its largest magnitude (Dettmers et al. 2022,
// section 2.1).
const quantizedBlock = 256

// quantizedMoments are the moments of Adam in 8 bits: M and V are quantized values, SM and SV the scales of their
// blocks. Zeros are moments of 0.
type quantizedMoments struct {
	values [2][]byte
	scales [2][]float32
	books  [2]*codebook
}

func checkAdam8(n *op.Node, in []*ir.Array) error {
	if err := inputs(in, 7, 7); err != nil {
		return err
	}
	blocks := (in[0].Elems() + quantizedBlock - 1) / quantizedBlock
	for i, name := range []string{"M", "V"} {
		values, err := tensor(in, 2+i, name, ir.Uint8)
		if err != nil {
			return err
		}
		if values.Elems() != in[0].Elems() {
			return fmt.Errorf("input %s is %s, want %d elements", name, values, in[0].Elems())
		}
		if err := floats(in, 4+i, "S"+name, blocks); err != nil {
			return err
		}
	}
	return checkBetas(n)
}

func quantizedStates(c *op.Call) stateStore {
	k := quantizedMoments{books: [2]*codebook{signedBook(), unsignedBook()}}
	for i := range 2 {
		k.values[i], k.scales[i] = c.In[2+i].Data, ir.View[float32](c.In[4+i])
	}
	return k
}

func (k quantizedMoments) load(at int, states *[2][]float32) {
	for i, s := range states {
		for from := 0; from < len(s); from += quantizedBlock {
			to := min(from+quantizedBlock, len(s))
			k.books[i].decode(s[from:to], k.values[i][at+from:at+to], k.scales[i][(at+from)/quantizedBlock])
		}
	}
}

func (k quantizedMoments) store(at int, states [2][]float32) {
	for i, s := range states {
		for from := 0; from < len(s); from += quantizedBlock {
			to := min(from+quantizedBlock, len(s))
			scale := absMax(s[from:to])
			k.scales[i][(at+from)/quantizedBlock] = scale
			k.books[i].encode(k.values[i][at+from:at+to], s[from:to], scale)
		}
	}
}

func absMax(x []float32) float32 {
	lo, hi := kernel.MinMax(x)
	return max(-lo, hi)
}
