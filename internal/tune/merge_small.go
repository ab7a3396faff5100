package tune

import "slices"

// negligible is the divisor of the total bytes below which a layer is not measured on its own.
const negligible = 2000

// mergeSmall merges negligible layers with equal candidates into one: normalizations and biases, of which there are
// many.
func mergeSmall(layers []*layer) []*layer {
	all := int64(0)
	for _, l := range layers {
		all += l.bytes
	}
	var kept []*layer
	for _, l := range layers {
		// Each measurement of a layer takes a run per candidate, whatever it could save.
		same := func(o *layer) bool { return o.small && slices.Equal(o.candidates(), l.candidates()) }
		if l.small = l.bytes*negligible < all; !l.small {
			kept = append(kept, l)
		} else if i := slices.IndexFunc(kept, same); i >= 0 {
			kept[i].merge(l)
		} else {
			kept = append(kept, l)
		}
	}
	return kept
}

func (l *layer) candidates() []int {
	var list []int
	for _, v := range l.variants {
		list = append(list, v.candidate)
	}
	return list
}

// merge adds another layer with the same candidates.
func (l *layer) merge(o *layer) {
	l.names, l.consumers = append(l.names, o.names...), append(l.consumers, o.consumers...)
	l.bytes += o.bytes
	for i := range l.variants {
		l.variants[i].bytes += o.variants[i].bytes
	}
	for k, names := range o.companions {
		if l.companions == nil {
			l.companions = map[int][]string{}
		}
		l.companions[k] = append(l.companions[k], names...)
	}
}
