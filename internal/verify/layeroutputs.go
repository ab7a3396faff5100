package verify

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// layerOutputs are the outputs that a model has for each of its layers: present.0.key, present.1.key, ….
type layerOutputs struct {
	pattern string         // the names, with * in place of the number
	numbers map[string]int // by name
}

var digits = regexp.MustCompile(`[0-9]+`)

// layersOf returns the outputs of want that are numbered like name, if got lacks those with the highest numbers: it
// has fewer layers. Nil otherwise. The other outputs may be those of other layers, as they are renumbered when
// layers are removed.
func layersOf(name string, want []string, got map[string]bool) *layerOutputs {
	for _, at := range digits.FindAllStringIndex(name, -1) {
		l := &layerOutputs{name[:at[0]] + "*" + name[at[1]:], map[string]int{}}
		for _, other := range want {
			if n, ok := layerNumber(other, name[:at[0]], name[at[1]:]); ok {
				l.numbers[other] = n
			}
		}
		if l.fewer(got) {
			return l
		}
	}
	return nil
}

// layerNumber is the number between prefix and suffix of a name.
func layerNumber(name, prefix, suffix string) (int, bool) {
	if len(name) <= len(prefix)+len(suffix) || name[:len(prefix)] != prefix || name[len(name)-len(suffix):] != suffix {
		return 0, false
	}
	n, err := strconv.Atoi(name[len(prefix) : len(name)-len(suffix)])
	return n, err == nil
}

// fewer reports whether got has some of the outputs, but not those with the highest numbers.
func (l *layerOutputs) fewer(got map[string]bool) bool {
	highest, lowest, some := -1, -1, false // the highest number of those it has, and the lowest of the others
	for name, n := range l.numbers {
		switch {
		case got[name]:
			highest, some = max(highest, n), true
		case lowest < 0 || n < lowest:
			lowest = n
		}
	}
	return some && highest < lowest
}

// without removes the outputs from names and returns a note about that.
func (l *layerOutputs) without(names []string, got map[string]bool) (rest []string, note string) {
	has := 0
	rest = slices.DeleteFunc(names, func(name string) bool {
		if _, ok := l.numbers[name]; !ok {
			return false
		}
		if got[name] {
			has++
		}
		return true
	})
	return rest, fmt.Sprintf("outputs %s are not compared: the second model has %d of %d", l.pattern, has, len(l.numbers))
}
