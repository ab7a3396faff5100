package tune

import "slices"

// negligible is the part of all bytes that a layer has which is not worth runs of its own.
const negligible = 2000

// lump makes one layer of all negligible ones that the same candidates take: norms and biases, of which there are many.
func lump(layers []*layer) []*layer {
	all := int64(0)
	for _, l := range layers {
		all += l.bytes
	}
	var kept []*layer
	for _, l := range layers {
		same := func(o *layer) bool { return o.small && slices.Equal(o.candidates(), l.candidates()) }
		if l.small = l.bytes*negligible < all; !l.small {
			kept = append(kept, l)
		} else if i := slices.IndexFunc(kept, same); i >= 0 {
			kept[i].take(l)
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

// take adds another layer with the same candidates.
func (l *layer) take(o *layer) {
	l.names, l.consumers = append(l.names, o.names...), append(l.consumers, o.consumers...)
	l.bytes += o.bytes
	for i := range l.variants {
		l.variants[i].bytes += o.variants[i].bytes
	}
	for k, names := range o.riders {
		if l.riders == nil {
			l.riders = map[int][]string{}
		}
		l.riders[k] = append(l.riders[k], names...)
	}
}
