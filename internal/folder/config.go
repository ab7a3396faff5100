package folder

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcompress/mcompress/internal/bounded"
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
	text    []byte
	values  []*value          // in the order of their ends
	members map[member]*value // of all objects, the first one of each key
}

// A member is the place of a value in an object.
type member struct {
	of  *value
	key string
}

// anyItem is the key of items of lists.
const anyItem = "*"

// A value is a scalar, list or object. It has no path of its own: that of all values would be quadratic.
type value struct {
	key        string // in its object; * in a list
	in         *value // the object or list that has it; nil for all of the text
	items      []*value
	start, end int32
	depth      uint8 // number of keys in its path
	sides      uint8 // bits of those sides that the key names
}

// Limits of configuration. Real ones have some thousand values in a few KiB.
const (
	maxConfig  = 16 << 20 // bytes
	maxNesting = 100      // lists and objects
	maxPath    = 4 << 10  // bytes of the keys of a path
	valueBytes = 128      // bytes of memory of a value and of its places in lists
	maxNames   = 1000     // names of values in one list for the user
)

// readConfig reads configuration in a folder.
func readConfig(dir, name string) (*jsonFile, error) {
	path := filepath.Join(dir, name)
	f, err := open(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := bounded.Read(f, maxConfig)
	if err != nil {
		return nil, fmt.Errorf("%s: configuration of %w", path, err)
	}
	c, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// parse finds the values of a text.
func parse(text []byte) (*jsonFile, error) {
	// Two members of a name are no reason to leave a model without its configuration: readers take one of them.
	d, err := bounded.Tokens(text, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, err
	}
	r := &configReader{c: &jsonFile{text: text, members: map[member]*value{}}, d: d, budget: bounded.NewBudget()}
	if _, err := r.value(nil, ""); err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, cmp.Or(err, errors.New("more follows the configuration"))
	}
	return r.c, nil
}

// A configReader reads the values of a text.
type configReader struct {
	c      *jsonFile
	d      *jsontext.Decoder
	budget *bounded.Budget
	path   int // bytes of the keys
}

// value reads a value of an object or list.
func (r *configReader) value(in *value, key string) (*value, error) {
	if err := r.budget.Take(valueBytes + int64(len(key))); err != nil {
		return nil, err
	}
	if r.path += len(key); r.path > maxPath {
		return nil, fmt.Errorf("the keys of a value have more than %d bytes", maxPath)
	}
	defer func() { r.path -= len(key) }()
	v := &value{key: key, in: in, sides: sidesOf(key)}
	if in != nil {
		v.depth = in.depth + 1
		if first := (member{in, key}); key != anyItem && r.c.members[first] == nil {
			r.c.members[first] = v
		}
	}
	switch kind := r.d.PeekKind(); kind {
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		if err := r.list(v, kind == jsontext.KindBeginArray); err != nil {
			return nil, err
		}
	default:
		text, err := r.d.ReadValue()
		if err != nil {
			return nil, err
		}
		v.start = int32(r.d.InputOffset()) - int32(len(text))
	}
	v.end = int32(r.d.InputOffset())
	r.c.values = append(r.c.values, v)
	return v, nil
}

// list reads a list or object and its items.
func (r *configReader) list(v *value, isList bool) error {
	if v.depth >= maxNesting {
		return fmt.Errorf("configuration nested deeper than %d levels", maxNesting)
	}
	if _, err := r.d.ReadToken(); err != nil {
		return err
	}
	v.start = int32(r.d.InputOffset()) - 1
	for {
		switch r.d.PeekKind() {
		case jsontext.KindEndObject, jsontext.KindEndArray:
			_, err := r.d.ReadToken()
			return err
		}
		key := anyItem
		if !isList {
			t, err := r.d.ReadToken()
			if err != nil {
				return err
			}
			key = t.String()
		}
		item, err := r.value(v, key)
		if err != nil {
			return err
		}
		if isList {
			v.items = append(v.items, item)
		}
	}
}

func (v *value) raw(text []byte) []byte { return text[v.start:v.end] }

// path are the keys of the value.
func (v *value) path() []string {
	path := make([]string, v.depth)
	for at := v; at.in != nil; at = at.in {
		path[at.depth-1] = at.key
	}
	return path
}

// isAt reports whether a path is that of the value.
func (v *value) isAt(path []string) bool { return int(v.depth) == len(path) && v.isIn(path) }

// isIn reports whether the value is in a section, or is it.
func (v *value) isIn(section []string) bool {
	if int(v.depth) < len(section) {
		return false
	}
	for ; v.in != nil; v = v.in {
		if n := int(v.depth); n <= len(section) && section[n-1] != v.key {
			return false
		}
	}
	return true
}

// root is the value that is all of the text.
func (c *jsonFile) root() *value { return c.values[len(c.values)-1] }

// valueAt is the value at a path of objects, and whether there is one.
func (c *jsonFile) valueAt(path []string) (*value, bool) {
	v := c.root()
	for _, key := range path {
		if v = c.members[member{v, key}]; v == nil {
			return nil, false
		}
	}
	return v, true
}

// replaced is the text with new texts of some values. That of a list or object replaces those of its items.
func (c *jsonFile) replaced(change func(v *value) ([]byte, bool)) []byte {
	var edits []edit
	for _, v := range c.values {
		if text, ok := change(v); ok {
			// Values are in the order of their ends, so that items come before their list: those within it are dropped.
			for len(edits) > 0 && edits[len(edits)-1].start >= v.start {
				edits = edits[:len(edits)-1]
			}
			edits = append(edits, edit{v, text})
		}
	}
	var out []byte
	at := int32(0)
	for _, e := range edits {
		out, at = append(append(out, c.text[at:e.start]...), e.text...), e.end
	}
	return append(out, c.text[at:]...)
}

// An edit is the new text of a value.
type edit struct {
	*value
	text []byte
}

// isFile reports whether a value is the name of a file of a model.
func (c *jsonFile) isFile(v *value, quotedName []byte) bool {
	return v.key == fileName && bytes.Equal(v.raw(c.text), quotedName)
}

// section is the path of the part about a model: that of genai_config.json with its file, such as model.decoder. Nil
// where no file is named.
func (c *jsonFile) section(model string) []string {
	name := quoted(model)
	for _, v := range c.values {
		if c.isFile(v, name) {
			// The first two keys, such as model.decoder; a file named at the top belongs to the whole.
			return v.path()[:min(2, v.depth-1)]
		}
	}
	return nil
}

// names reports whether a section names a file as its model.
func (c *jsonFile) names(section []string, file string) bool {
	name := quoted(file)
	return slices.ContainsFunc(c.values, func(v *value) bool { return c.isFile(v, name) && v.isIn(section) })
}

// renamed is the text with another file in place of a section's model.
func (c *jsonFile) renamed(section []string, model, file string) []byte {
	from, to := quoted(model), quoted(file)
	return c.replaced(func(v *value) ([]byte, bool) { return to, c.isFile(v, from) && v.isIn(section) })
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
	text := c.replaced(func(v *value) ([]byte, bool) {
		return []byte("0"), v.key == fileName || slices.Contains(layerThresholds, v.key) || isConfigValue(v.key) ||
			perLayer(v) || numbered(v)
	})
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return text
	}
	return addedHeadSize.ReplaceAll(b.Bytes(), nil)
}

// perLayer reports whether v is a list that may have an item for each layer, such as layer_types.
func perLayer(v *value) bool {
	return v.items != nil && (strings.Contains(v.key, "layer") || strings.Contains(v.key, "block")) && !numbered(v)
}

// numbered reports whether v is a list of numbers of layers; genai_config.json has one of layers with a sliding window.
func numbered(v *value) bool {
	return slices.Contains(layerNumbers, v.key) || v.key == "layers" && v.in.key == "sliding_window"
}

// intervals are the keys of intervals of layers above 1 in a section.
func (c *jsonFile) intervals(section []string) []string {
	var keys []string
	for _, v := range c.values {
		list, ok := layerIntervals[v.key]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(string(v.raw(c.text)))
		if err != nil || n < 2 || !v.isIn(section) {
			continue
		}
		if l := c.sibling(v, list); l == nil || l.items == nil {
			keys = append(keys, v.key)
		}
	}
	return keys
}

// renumbered are the numbers of layers after the removal of some.
func renumbered(text []byte, items []*value, l pass.RemovedLayers) [][]byte {
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
func (v *value) list(text []byte, items [][]byte) []byte {
	first, last := v.items[0], v.items[len(v.items)-1]
	separator := []byte(", ")
	if len(v.items) > 1 {
		separator = text[first.end:v.items[1].start]
	}
	return slices.Concat(text[v.start:first.start], bytes.Join(items, separator), text[last.end:v.end])
}
