package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mcompress/mcompress/report"
)

// A Size is a flag for a number of bytes: 256MiB is 2^28, 10MB is 10^7.
type Size int64

// String is empty for 0, which is not a valid value.
func (s *Size) String() string {
	if *s == 0 {
		return ""
	}
	return humanize.IBytes(uint64(*s))
}

// Set accepts a positive number with or without a unit.
func (s *Size) Set(text string) error {
	n, err := parseSize(text)
	*s = Size(n)
	return err
}

func parseSize(text string) (int64, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return 0, errors.New("invalid size; use e.g. 256MiB (2^28 bytes), 10MB (10^7 bytes) or 4096")
	}
	return int64(n), nil
}

// An Enum is a flag with a fixed set of values.
type Enum struct {
	Value string
	Words []string
}

func (e *Enum) String() string { return e.Value }

// Choices returns the values for completion.
func (e *Enum) Choices() []string { return e.Words }

// Set accepts one of the words.
func (e *Enum) Set(text string) error {
	if !slices.Contains(e.Words, text) {
		return fmt.Errorf("there are %s", And(e.Words))
	}
	e.Value = text
	return nil
}

// Formats are the formats of reports to write: a list separated by commas, or
// none.
type Formats struct {
	Chosen, Known []string
}

func (f *Formats) String() string { return strings.Join(f.Chosen, ",") }

// Choices returns the values for completion.
func (f *Formats) Choices() []string { return append(slices.Clone(f.Known), "none") }

// Set replaces earlier values.
func (f *Formats) Set(text string) error {
	f.Chosen = nil
	if text == "none" {
		return nil
	}
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(f.Known, name) {
			return fmt.Errorf("there are %s, or none alone", And(f.Known))
		}
		if !slices.Contains(f.Chosen, name) {
			f.Chosen = append(f.Chosen, name)
		}
	}
	return nil
}

// A Gate is a flag that adds a limit of the given name to a list.
type Gate struct {
	Name string
	To   *[]report.Limit
}

func (g *Gate) String() string { return "" }

// Set replaces the limit that an earlier flag of the same name set.
func (g *Gate) Set(text string) error {
	v, err := report.ParseBound(g.Name, text)
	if err != nil {
		return err
	}
	*g.To = slices.DeleteFunc(*g.To, func(l report.Limit) bool { return l.Name == g.Name })
	*g.To = append(*g.To, report.Limit{Name: g.Name, Bound: v})
	return nil
}
