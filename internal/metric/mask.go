package metric

import (
	"maps"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// A Mask is an input that marks the tokens that count, by samples: 0 is padding.
type Mask struct {
	Name string
	Rows [][]float64 // of each sample, one number for each token
}

// Masks are the attention masks among the inputs of a run of n samples, in the order of their names. Masks of other
// purposes, in which 1 may be padding (key_padding_mask) or a token to predict (bool_masked_pos, special_tokens_mask),
// have other names.
func Masks(in map[string]*ir.Array, n int) []Mask {
	var masks []Mask
	for _, name := range slices.Sorted(maps.Keys(in)) {
		a, low := in[name], strings.TrimSuffix(strings.ToLower(name), ":0")
		if low != "mask" && !strings.HasSuffix(low, "attention_mask") && !strings.HasSuffix(low, "input_mask") {
			continue
		}
		if !readable(a) || len(a.Shape) != 2 || a.Shape[0] != int64(n) {
			continue
		}
		if all := rows(a, n); all != nil {
			masks = append(masks, Mask{name, all})
		}
	}
	return masks
}
