package train

import (
	"fmt"

	"github.com/mcompress/mcompress/internal/engine/op"
	"github.com/mcompress/mcompress/internal/kernel"
	"github.com/mcompress/mcompress/ir"
)

// codedBlock is how many elements of a state share a scale, their largest magnitude (Dettmers et al. 2022, section 2.1).
const codedBlock = 256

// coded are the states of Adam in 8 bits each: M and V are codes, SM and SV the scales of their blocks. All
// zeros stand for states of 0.
type coded struct {
	codes  [2][]byte
	scales [2][]float32
	books  [2]*codebook
}

func checkAdam8(n *op.Node, in []*ir.Array) error {
	if err := inputs(in, 7, 7); err != nil {
		return err
	}
	blocks := (in[0].Elems() + codedBlock - 1) / codedBlock
	for i, name := range []string{"M", "V"} {
		codes, err := tensor(in, 2+i, name, ir.Uint8)
		if err != nil {
			return err
		}
		if codes.Elems() != in[0].Elems() {
			return fmt.Errorf("input %s is %s, want %d elements", name, codes, in[0].Elems())
		}
		if err := floats(in, 4+i, "S"+name, blocks); err != nil {
			return err
		}
	}
	return checkBetas(n)
}

func codedStates(c *op.Call) keeper {
	k := coded{books: [2]*codebook{signedBook(), unsignedBook()}}
	for i := range 2 {
		k.codes[i], k.scales[i] = c.In[2+i].Data, ir.View[float32](c.In[4+i])
	}
	return k
}

func (k coded) load(at int, states *[2][]float32) {
	for i, s := range states {
		for from := 0; from < len(s); from += codedBlock {
			to := min(from+codedBlock, len(s))
			k.books[i].decode(s[from:to], k.codes[i][at+from:at+to], k.scales[i][(at+from)/codedBlock])
		}
	}
}

func (k coded) store(at int, states [2][]float32) {
	for i, s := range states {
		for from := 0; from < len(s); from += codedBlock {
			to := min(from+codedBlock, len(s))
			scale := absMax(s[from:to])
			k.scales[i][(at+from)/codedBlock] = scale
			k.books[i].encode(k.codes[i][at+from:at+to], s[from:to], scale)
		}
	}
}

func absMax(x []float32) float32 {
	lo, hi := kernel.MinMax(x)
	return max(-lo, hi)
}
