package distill

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

// words are the items of a list with commas.
func words(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// A size is an option's number of bytes: 1GiB is 2^30.
type size int64

// String is empty for no size.
func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return humanize.IBytes(uint64(*s))
}

// Set takes a positive number with or without a unit.
func (s *size) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > 1<<62 {
		return fmt.Errorf("invalid size; use e.g. 1GiB (2^30 bytes) or 500MB (5·10^8 bytes)")
	}
	*s = size(n)
	return nil
}
