package folder

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

// layerCount is the name of the number of layers, as those of pass.ConfigValue.
const layerCount = "num_hidden_layers"

// valueKeys are the keys of the numbers that pruning changes in the configurations of several architectures; some have
// a list, of a number for each stage. A ratio stands for a number, too, and cannot follow.
var valueKeys = []struct {
	name string
	keys []string
}{
	{
		layerCount,
		[]string{
			layerCount,
			"num_layers",
			"n_layer",
			"n_layers",
			"encoder_layers",
			"decoder_layers",
			"num_encoder_layers",
			"num_decoder_layers",
			"depths",
		},
	},
	{pass.AttentionHeads, []string{
		pass.AttentionHeads, "num_heads", "n_head", "n_heads", "attention_heads", "encoder_attention_heads",
		"decoder_attention_heads", "num_encoder_attention_heads", "num_decoder_attention_heads",
	}},
	{pass.KeyValueHeads, []string{pass.KeyValueHeads, "num_kv_heads", "n_kv_heads", "multi_query_group_num"}},
	{pass.IntermediateSize, []string{
		pass.IntermediateSize, "ffn_dim", "n_inner", "hidden_dim", "d_ff", "d_inner", "encoder_ffn_dim", "decoder_ffn_dim",
		"mlp_dim", "ffn_hidden_size", "mlp_ratio", "mlp_ratios", "expansion_ratio",
	}},
}

// headSizes are the keys of the size of a head. Without one it is computed from the number of heads.
var headSizes = []string{"head_dim", "head_size", "d_kv", "attention_head_size", "kv_channels"}

// addedHeadSize is the size that adapted adds, in text without spaces and changed numbers.
var addedHeadSize = regexp.MustCompile(`,"` + headSizes[0] + `":0\b`)

// isConfigValue reports whether pruning may change the number of that key, or those of its list.
func isConfigValue(key string) bool {
	for _, k := range valueKeys {
		if slices.Contains(k.keys, key) {
			return true
		}
	}
	return key == headSizes[0]
}

// A change is what one step of compression changed of an architecture.
type change struct {
	removed []pass.RemovedLayers
	values  []pass.ConfigValue // the numbers of layers included
}

// changes are those of a run, in order.
func changes(removed []pass.RemovedLayers, values []pass.ConfigValue) []change {
	var list []change
	at := func(i int) *change {
		for len(list) <= i {
			list = append(list, change{})
		}
		return &list[i]
	}
	for _, l := range removed {
		c := at(l.Change)
		c.removed = append(c.removed, l)
		c.values = append(
			c.values,
			pass.ConfigValue{
				Name:     layerCount,
				Submodel: l.Submodel,
				From:     l.Layers,
				To:       []int{l.Layers - len(l.Removed)},
			},
		)
	}
	for _, v := range values {
		c := at(v.Change)
		c.values = append(c.values, v)
	}
	return list
}

// has reports whether a number of that name changed.
func (c change) has(name string) bool {
	return slices.ContainsFunc(c.values, func(v pass.ConfigValue) bool { return v.Name == name && v.Changed() })
}

// An adaptation lets the part of a configuration about a model, which is a section or all of it, follow a change.
type adaptation struct {
	*jsonFile
	of      change
	section []string
	model   string // the name of its file, which may name its part
	edits   map[*value][]byte
	edited  []string // their keys
	stale   []string // keys whose values may not describe the result
	stated  []uint8  // the sides of the numbers in the section, each combination once; nil before they are known
}

// adapt finds the edits that follow from a change, and the keys that cannot follow: since layers differ, since the
// number was another one before, or since it may be that of another part of the model.
func (c *jsonFile) adapt(section []string, model string, of change) *adaptation {
	a := &adaptation{jsonFile: c, of: of, section: section, model: model, edits: map[*value][]byte{}}
	for _, k := range valueKeys {
		switch name := k.name; {
		case of.has(name):
			if !a.numbers(name, k.keys) {
				a.stale = append(a.stale, name)
			}
		case name == pass.KeyValueHeads && of.has(pass.AttentionHeads): // each head has its own, or all have one
			if !slices.ContainsFunc(of.values, func(v pass.ConfigValue) bool { return v.Name == name }) {
				a.numbers(pass.AttentionHeads, k.keys)
			}
		}
	}
	if len(of.removed) > 0 {
		a.layers()
		a.stale = append(a.stale, c.intervals(section)...)
	}
	return a
}

// result is the text after the edits.
func (a *adaptation) result() []byte {
	return a.replaced(func(v *value) ([]byte, bool) {
		text, ok := a.edits[v]
		return text, ok
	})
}

// name is the path of a value, without that of its item in a list.
func (v *value) name() string {
	return strings.Join(slices.DeleteFunc(v.path(), func(key string) bool { return key == anyItem }), ".")
}

func (a *adaptation) edit(v *value, text []byte) {
	a.edits[v] = text
	addName(&a.edited, v)
}

// addName adds the name of a value to a list for the user. The lengths of all names are quadratic in that of the text.
func addName(names *[]string, v *value) {
	if len(*names) < maxNames {
		*names = append(*names, v.name())
	}
}

// numbers changes the numbers of keys, and reports whether there are any.
func (a *adaptation) numbers(name string, keys []string) (found bool) {
	sized := map[*value]bool{} // objects with a size of heads
	for _, v := range a.values {
		key := v.key
		if key == anyItem {
			key = v.in.key
		}
		if v.items != nil || !slices.Contains(keys, key) || !v.isIn(a.section) {
			continue
		}
		found = true
		size, to, concerned := 0, []int(nil), false
		for _, c := range a.of.values {
			if matches := a.concerns(v, c.Submodel); c.Name != name || matches == no {
				continue
			} else if concerned = concerned || c.Changed(); matches == maybe {
				to = append(to, 0, 1) // no single number
			}
			// The number of the source, so that a key with another meaning in this architecture stays; null stands for
			// the default, which this number is.
			if raw := string(v.raw(a.text)); raw == strconv.Itoa(c.From) || raw == "null" && c.Changed() {
				to, size = append(to, c.To...), max(size, c.HeadSize)
			}
		}
		slices.Sort(to)
		switch to = slices.Compact(to); {
		case !concerned:
			continue
		case len(to) != 1:
			addName(&a.stale, v)
			continue
		}
		text := strconv.Itoa(to[0])
		// Without a key of the size, readers compute hidden_size / heads, which is wrong once heads are removed: the
		// size is added, or reported as stale in a list.
		if name == pass.AttentionHeads &&
			slices.Contains(valueKeys[1].keys, key) &&
			!sized[v.in] &&
			!a.hasHeadSize(v) {
			if sized[v.in] = true; size > 0 && v.key == key {
				text += fmt.Sprintf(`, "%s": %d`, headSizes[0], size)
			} else {
				a.stale = append(a.stale, headSizes[0])
			}
		}
		a.edit(v, []byte(text))
	}
	return found
}

// hasHeadSize reports whether the object of v has the size of heads.
func (c *jsonFile) hasHeadSize(v *value) bool {
	return slices.ContainsFunc(headSizes, func(key string) bool { return c.sibling(v, key) != nil })
}

// sibling is another value of the object of v, or nil.
func (c *jsonFile) sibling(v *value, key string) *value { return c.members[member{v.in, key}] }

// The answers of concerns.
const (
	no = iota
	maybe
	yes
)

// sides are the beginnings or parts of names by which configuration tells submodels apart.
var sides = []struct {
	name string
	of   []pass.Submodel
}{
	{"decoder", []pass.Submodel{pass.Decoder}},
	{"encoder", []pass.Submodel{pass.Text, pass.Vision, pass.Audio}},
	{"text_", []pass.Submodel{pass.Text, pass.Decoder}},
	{"vision_", []pass.Submodel{pass.Vision}},
	{"image_", []pass.Submodel{pass.Vision}},
	{"audio_", []pass.Submodel{pass.Audio}},
	{"speech_", []pass.Submodel{pass.Audio}},
}

// sidesOf are the sides that a key names, a bit for each.
func sidesOf(key string) (bits uint8) {
	for i, s := range sides {
		if strings.Contains(key, s.name) {
			bits |= 1 << i
		}
	}
	return bits
}

// sidesOf are the sides of what v, by its path in the section, is a number of.
func (a *adaptation) sidesOf(v *value) (bits uint8) {
	for at := v; int(at.depth) > len(a.section); at = at.in {
		bits |= at.sides
	}
	// In encoder-decoder models the number without a side is that of the encoder.
	if (v.key == layerCount || v.key == "num_layers") &&
		(a.sibling(v, "decoder_layers") != nil || a.sibling(v, "num_decoder_layers") != nil) {
		bits |= sidesOf("encoder_layers")
	}
	return bits
}

// statedSides are the combinations of sides of the numbers in the section.
func (a *adaptation) statedSides() []uint8 {
	if a.stated == nil {
		a.stated = []uint8{}
		for _, v := range a.values {
			if !isConfigValue(v.key) || !v.isIn(a.section) {
				continue
			}
			if bits := a.sidesOf(v); bits != 0 && !slices.Contains(a.stated, bits) {
				a.stated = append(a.stated, bits)
			}
		}
	}
	return a.stated
}

// concerns reports whether v is a number of a submodel. Of one that is not known every number may be, unless there are
// numbers of one alone.
func (a *adaptation) concerns(v *value, of pass.Submodel) int {
	if strings.Contains(a.model, "decoder") {
		of = pass.Decoder
	}
	answer, bits := yes, a.sidesOf(v)
	for i, side := range sides {
		switch {
		case bits&(1<<i) == 0:
		case of != "" && !slices.Contains(side.of, of):
			return no
		// A submodel that is not known may be either side if the configuration has numbers of both.
		case of == "" && slices.ContainsFunc(a.statedSides(), func(other uint8) bool { return other&(1<<i) == 0 }):
			answer = maybe
		}
	}
	return answer
}

// layers changes lists with an item for each layer, and numbers of layers.
func (a *adaptation) layers() {
	for _, v := range a.values {
		threshold, isThreshold := 0, false
		if slices.Contains(layerThresholds, v.key) {
			n, err := strconv.Atoi(string(v.raw(a.text)))
			threshold, isThreshold = n, err == nil
		}
		isList, isNumbered := perLayer(v), v.items != nil && numbered(v)
		if !isThreshold && !isList && !isNumbered || !v.isIn(a.section) {
			continue
		}
		l, ok := a.stack(v, isList)
		switch {
		case !ok && isList && l.Layers == 0: // a list of another length
		case !ok:
			addName(&a.stale, v)
		case isThreshold:
			a.edit(v, strconv.AppendInt(nil, int64(threshold-removedBelow(threshold, l)), 10))
		case isNumbered && len(v.items) > 0:
			a.edit(v, v.list(a.text, renumbered(a.text, v.items, l)))
		case isList:
			var kept [][]byte
			for i, item := range v.items {
				if !slices.Contains(l.Removed, i) {
					kept = append(kept, item.raw(a.text))
				}
			}
			a.edit(v, v.list(a.text, kept))
		}
	}
}

// stack is the one stack of layers that v is about: by the length of a list, or by the number of layers next to v. It
// is the last one and not ok where there are several, and zero where there is none.
func (a *adaptation) stack(v *value, isList bool) (stack pass.RemovedLayers, ok bool) {
	counts := []string{strconv.Itoa(len(v.items))}
	if !isList {
		counts = nil
		for _, key := range valueKeys[0].keys {
			if s := a.sibling(v, key); s != nil {
				counts = append(counts, string(s.raw(a.text)))
			}
		}
	}
	for _, l := range a.of.removed {
		answer := a.concerns(v, l.Submodel)
		if answer == no || counts != nil && !slices.Contains(counts, strconv.Itoa(l.Layers)) {
			continue
		}
		ok = answer == yes && (stack.Layers == 0 || ok && slices.Equal(stack.Removed, l.Removed))
		stack = l
	}
	return stack, ok
}
