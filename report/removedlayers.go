package report

import (
	"fmt"
	"strings"

	"github.com/mcompress/mcompress/pass"
)

// RemovedText states which layers of one stack were removed, by their numbers from 0.
func RemovedText(l pass.RemovedLayers) string {
	var words []string
	for i := 0; i < len(l.Removed); {
		last := i
		for last+1 < len(l.Removed) && l.Removed[last+1] == l.Removed[last]+1 {
			last++
		}
		word := fmt.Sprint(l.Removed[i])
		if last > i {
			word = fmt.Sprintf("%d–%d", l.Removed[i], l.Removed[last])
		}
		words, i = append(words, word), last+1
	}
	return fmt.Sprintf(
		"%d of %d layers%s removed: %s",
		len(l.Removed),
		l.Layers,
		ofPart(l.Submodel),
		strings.Join(words, ", "),
	)
}

// removed writes the removed layers.
func (m *markdown) removed(ls []pass.RemovedLayers) {
	for _, l := range ls {
		m.line("%s.", prose(RemovedText(l)))
	}
}
