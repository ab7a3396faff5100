package fleet

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
)

// A list that is read has no empty entries, and is the same if it is written with NUL between its entries.
func FuzzList(f *testing.F) {
	hostile.Seed(f, hostile.Lines(), "a.onnx\nb.onnx\n", "a b\x00c\nd")
	f.Fuzz(func(t *testing.T, text []byte) {
		oracle.Linear.Check(t, len(text), func() {
			list, err := ReadList(bytes.NewReader(text))
			if err != nil {
				return
			}
			if slices.Contains(list, "") {
				t.Errorf("%q has an empty entry", list)
			}
			again, err := ReadList(strings.NewReader(strings.Join(list, "\x00") + "\x00"))
			if err != nil || !slices.Equal(list, again) {
				t.Errorf("%q becomes %q, %v", list, again, err)
			}
		})
	})
}
