package distill

import (
	"errors"

	"github.com/dustin/go-humanize"
)

// A Size is a number of bytes. As an option it is text such as 1GiB (2^30 bytes).
type Size int64

// String is empty for 0.
func (s *Size) String() string {
	if *s == 0 {
		return ""
	}
	return humanize.IBytes(uint64(*s))
}

// Set parses a positive number with an optional unit.
func (s *Size) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > 1<<62 {
		return errors.New("invalid size; use e.g. 1GiB (2^30 bytes) or 500MB (5·10^8 bytes)")
	}
	*s = Size(n)
	return nil
}
