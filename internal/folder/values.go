package folder

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"

	"github.com/mcompress/mcompress/pass"
)

// valueKeys are the keys of the numbers that pruning changes in the configurations of several architectures.
var valueKeys = map[string][]string{
	pass.AttentionHeads:   {"num_attention_heads", "num_heads", "n_head", "n_heads", "encoder_attention_heads", "decoder_attention_heads", "num_key_value_heads"},
	pass.KeyValueHeads:    {"num_key_value_heads", "num_kv_heads"},
	pass.IntermediateSize: {"intermediate_size", "ffn_dim", "n_inner", "hidden_dim", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim", "mlp_dim"},
}

// headSizes are the keys of the size of a head. Without one it is computed from the number of heads.
var headSizes = []string{"head_dim", "head_size", "d_kv", "attention_head_size"}

// addedHeadSize is the size that withValues adds, in text without spaces and changed numbers.
var addedHeadSize = regexp.MustCompile(`,"` + headSizes[0] + `":0\b`)

// isConfigValue reports whether pruning may change the number of that key.
func isConfigValue(key string) bool {
	for _, keys := range valueKeys {
		if slices.Contains(keys, key) {
			return true
		}
	}
	return key == headSizes[0]
}

// withValues is the text with the changed numbers in a section. Where it has no size of heads, it gets one.
func withValues(text []byte, section []string, values []pass.ConfigValue) ([]byte, error) {
	for _, changed := range values {
		c, err := parse(text)
		if err != nil {
			return nil, err
		}
		if len(changed.To) != 1 {
			continue
		}
		was := []byte(strconv.Itoa(changed.From))
		text = c.replaced(func(v value) ([]byte, bool) {
			if !slices.Contains(valueKeys[changed.Name], v.key()) || !v.in(section) || !bytes.Equal(v.raw(c.text), was) {
				return nil, false
			}
			number := strconv.AppendInt(nil, int64(changed.To[0]), 10)
			if changed.HeadSize > 0 && !c.hasHeadSize(v) {
				number = strconv.AppendInt(append(number, `, "`+headSizes[0]+`": `...), int64(changed.HeadSize), 10)
			}
			return number, true
		})
	}
	return text, nil
}

// hasHeadSize reports whether the object of v has the size of heads.
func (c *jsonFile) hasHeadSize(v value) bool {
	return slices.ContainsFunc(headSizes, func(key string) bool {
		_, ok := c.at(append(slices.Clone(v.path[:len(v.path)-1]), key))
		return ok
	})
}
