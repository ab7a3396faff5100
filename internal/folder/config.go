package folder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

// fileName is the key of a model's file in genai_config.json.
const fileName = "filename"

// layerNumbers are keys of lists of numbers of layers: layers without experts, with experts, with cross-attention, with
// attention in a recurrent model, and with shared attention.
var layerNumbers = []string{"mlp_only_layers", "moe_layers", "cross_attention_layers", "attn_layer_indices",
	"hybrid_layer_ids"}

// layerThresholds are keys of a number of first layers that differ from the rest: those without a sliding window, and
// those without experts.
var layerThresholds = []string{"max_window_layers", "first_k_dense_replace"}

// layerIntervals are keys of a number n of which every n-th layer differs from the others, and of the list of layers
// that counts instead where it is given. They do not follow removed layers, after which such layers are seldom at equal
// distances.
var layerIntervals = map[string]string{
	"attn_layer_period":          "",
	"decoder_sparse_step":        "",
	"expert_layer_period":        "",
	"full_attention_interval":    "layer_types",
	"global_attn_every_n_layers": "layer_types",
	"interleave_moe_layer_step":  "moe_layers",
	"moe_layer_freq":             "",
	"no_rope_layer_interval":     "no_rope_layers",
	"sliding_window_pattern":     "layer_types",
}

// A jsonFile is the text of a configuration with the places of its values: edits leave everything else alone, the order
// of keys, spaces and numbers that float64 does not hold.
type jsonFile struct {
	text   []byte
	values []value // in the order of their ends
}

// A value is a scalar, list or object.
type value struct {
	path       []string // keys; lists have *
	start, end int
	items      []value // of a list
}

// maxConfig bounds the size of configuration in bytes.
const maxConfig = 16 << 20

// readConfig reads configuration in a folder.
func readConfig(dir, name string) (*jsonFile, error) {
	path := filepath.Join(dir, name)
	f, err := open(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxConfig {
		return nil, fmt.Errorf("%s: configuration of more than %d MiB", path, maxConfig>>20)
	}
	c, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// parse finds the values of a text.
func parse(text []byte) (*jsonFile, error) {
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil { // parse expects valid JSON
		return nil, err
	}
	c := &jsonFile{text: text}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	_, err := c.readValue(d, nil)
	return c, err
}

// maxNesting is the maximum depth of a configuration. Memory is quadratic in it: values have their paths.
const maxNesting = 100

// readValue reads a value.
func (c *jsonFile) readValue(d *json.Decoder, path []string) (value, error) {
	if len(path) >= maxNesting {
		return value{}, fmt.Errorf("configuration nested deeper than %d levels", maxNesting)
	}
	v := value{path: path, start: c.skip(d.InputOffset())}
	t, err := d.Token()
	for err == nil && d.More() && (t == json.Delim('{') || t == json.Delim('[')) {
		key := "*"
		if t == json.Delim('{') {
			var k json.Token
			if k, err = d.Token(); err != nil {
				return v, err
			}
			key = k.(string)
		}
		var item value
		item, err = c.readValue(d, append(slices.Clip(path), key))
		if t == json.Delim('[') {
			v.items = append(v.items, item)
		}
	}
	if _, ok := t.(json.Delim); err == nil && ok {
		_, err = d.Token()
	}
	// The decoder may count spaces after a number.
	v.end = v.start + len(bytes.TrimRight(c.text[v.start:d.InputOffset()], " \t\r\n"))
	c.values = append(c.values, v)
	return v, err
}

// skip is the first offset from i on that is not between values.
func (c *jsonFile) skip(i int64) int {
	for strings.IndexByte(" \t\r\n:,", c.text[i]) >= 0 {
		i++
	}
	return int(i)
}

// key is the last key of the path.
func (v value) key() string {
	if len(v.path) == 0 {
		return ""
	}
	return v.path[len(v.path)-1]
}

func (v value) raw(text []byte) []byte { return text[v.start:v.end] }

// valueAt is the value at a path, and whether there is one.
func (c *jsonFile) valueAt(path []string) (value, bool) {
	i := slices.IndexFunc(c.values, func(v value) bool { return slices.Equal(v.path, path) })
	if i < 0 {
		return value{}, false
	}
	return c.values[i], true
}

// An edit is the new text of a value.
type edit struct {
	value
	text []byte
}

// replaced is the text with new texts of some values. That of a list or object replaces those of its items.
func (c *jsonFile) replaced(change func(v value) ([]byte, bool)) []byte {
	var edits []edit
	for _, v := range c.values {
		if text, ok := change(v); ok {
			// Values are in the order of their ends, so that items come before their list: those within it are dropped.
			edits = append(slices.DeleteFunc(edits, func(e edit) bool { return e.start >= v.start }), edit{v, text})
		}
	}
	var out []byte
	at := 0
	for _, e := range edits {
		out, at = append(append(out, c.text[at:e.start]...), e.text...), e.end
	}
	return append(out, c.text[at:]...)
}

// section is the path of the part about a model: that of genai_config.json with its file, such as model.decoder. Nil
// where no file is named.
func (c *jsonFile) section(model string) []string {
	for _, v := range c.values {
		if v.key() == fileName && bytes.Equal(v.raw(c.text), quoted(model)) {
			// The first two keys, such as model.decoder; a file named at the top belongs to the whole.
			return v.path[:min(2, len(v.path)-1)]
		}
	}
	return nil
}

// names reports whether a section names a file as its model.
func (c *jsonFile) names(section []string, file string) bool {
	return slices.ContainsFunc(c.values, func(v value) bool {
		return v.key() == fileName && v.in(section) && bytes.Equal(v.raw(c.text), quoted(file))
	})
}

func (v value) in(section []string) bool {
	return len(v.path) >= len(section) && slices.Equal(v.path[:len(section)], section)
}

// renamed is the text with another file in place of a section's model.
func (c *jsonFile) renamed(section []string, model, file string) []byte {
	return c.replaced(func(v value) ([]byte, bool) {
		return quoted(file), v.key() == fileName && v.in(section) && bytes.Equal(v.raw(c.text), quoted(model))
	})
}

func quoted(text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // strings have a form
	return bytes.TrimSpace(b.Bytes())
}

// equal reports whether the values of two configurations are the same, except those that follow from compression: names
// of files of models, numbers and lists of layers, and numbers of heads and neurons.
func (c *jsonFile) equal(o *jsonFile) bool {
	return bytes.Equal(c.common(), o.common())
}

// common is the text without spaces and without what follows from compression.
func (c *jsonFile) common() []byte {
	text := c.replaced(func(v value) ([]byte, bool) {
		return []byte("0"), v.key() == fileName || slices.Contains(layerThresholds, v.key()) || isConfigValue(v.key()) ||
			perLayer(v) || numbered(v)
	})
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return text
	}
	return addedHeadSize.ReplaceAll(b.Bytes(), nil)
}

// perLayer reports whether v is a list that may have an item for each layer, such as layer_types.
func perLayer(v value) bool {
	return v.items != nil && (strings.Contains(v.key(), "layer") || strings.Contains(v.key(), "block")) && !numbered(v)
}

// numbered reports whether v is a list of numbers of layers; genai_config.json has one of layers with a sliding window.
func numbered(v value) bool {
	return slices.Contains(layerNumbers, v.key()) ||
		len(v.path) > 1 && v.key() == "layers" && v.path[len(v.path)-2] == "sliding_window"
}

// intervals are the keys of intervals of layers above 1 in a section.
func (c *jsonFile) intervals(section []string) []string {
	var keys []string
	for _, v := range c.values {
		list, ok := layerIntervals[v.key()]
		n, err := strconv.Atoi(string(v.raw(c.text)))
		if !ok || err != nil || n < 2 || !v.in(section) {
			continue
		}
		if l, given := c.valueAt(append(slices.Clone(v.path[:len(v.path)-1]), list)); !given || l.items == nil {
			keys = append(keys, v.key())
		}
	}
	return keys
}

// renumbered are the numbers of layers after the removal of some.
func renumbered(text []byte, items []value, l pass.RemovedLayers) [][]byte {
	var kept [][]byte
	for _, item := range items {
		n, err := strconv.Atoi(string(item.raw(text)))
		switch {
		case err != nil:
			kept = append(kept, item.raw(text))
		case !slices.Contains(l.Removed, n):
			// Each number falls by the removed layers before it.
			kept = append(kept, strconv.AppendInt(nil, int64(n-removedBelow(n, l)), 10))
		}
	}
	return kept
}

// removedBelow is the number of removed layers whose number is less than n.
func removedBelow(n int, l pass.RemovedLayers) int {
	below := 0
	for _, r := range l.Removed {
		if r < n {
			below++
		}
	}
	return below
}

// list is the text of a list with other items, in the layout that it has.
func (v value) list(text []byte, items [][]byte) []byte {
	first, last := v.items[0], v.items[len(v.items)-1]
	separator := []byte(", ")
	if len(v.items) > 1 {
		separator = text[first.end:v.items[1].start]
	}
	return slices.Concat(text[v.start:first.start], bytes.Join(items, separator), text[last.end:v.end])
}
