package pass

import (
	"errors"
	"fmt"
	"testing"
)

// An error of an option has the name as recipes have it, and the flag for the command line, also of its causes.
func TestOptionErrorNames(t *testing.T) {
	inner := OptionErrorf("--block %d: must be a power of two", 24)
	outer := OptionErrorf("step 2: %w; leave out --block, or use -- or a-- b", inner)
	for _, c := range []struct {
		err         error
		text, flags string
	}{
		{inner, "block 24: must be a power of two", "--block 24: must be a power of two"},
		{outer, "step 2: block 24: must be a power of two; leave out block, or use -- or a-- b",
			"step 2: --block 24: must be a power of two; leave out --block, or use -- or a-- b"},
	} {
		var option *OptionError
		if !errors.As(fmt.Errorf("m.onnx: %w", c.err), &option) {
			t.Fatal(c.err)
		}
		if option.Error() != c.text || option.Flags() != c.flags {
			t.Errorf("%q, flags %q", option, option.Flags())
		}
	}
}
