package quantize

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A word is an option that takes one of some words. As it says which, recipes hold it.
type word struct {
	to    *string
	words []string
}

func (w word) String() string {
	if w.to == nil {
		return ""
	}
	return *w.to
}

// Set takes one of the words.
func (w word) Set(v string) error {
	if !slices.Contains(w.words, v) {
		return fmt.Errorf("%q is neither %s", v, strings.Join(w.words, " nor "))
	}
	*w.to = v
	return nil
}

// A blockSize is an option: how many weights share a scale, 0 where blocks are not asked for.
type blockSize int

// String is empty for none.
func (b *blockSize) String() string {
	if *b == 0 {
		return ""
	}
	return strconv.Itoa(int(*b))
}

// Set takes a power of two from 16 to 256.
func (b *blockSize) Set(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 16 || n > 256 || n&(n-1) != 0 {
		return fmt.Errorf("%q is not a power of two from 16 to 256", v)
	}
	*b = blockSize(n)
	return nil
}
