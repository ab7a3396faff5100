package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Counts is a flag's list of positive numbers, with commas: 1,8,32.
type Counts []int64

func (c *Counts) String() string {
	var words []string
	for _, n := range *c {
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, ",")
}

// Set replaces earlier values.
func (c *Counts) Set(text string) error {
	*c = nil
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
		if err != nil || n < 1 {
			return errors.New("want positive integers separated by commas, e.g. 1,8,32")
		}
		*c = append(*c, n)
	}
	return nil
}

// Dims is a flag that may be given several times: NAME=SIZE of a dynamic axis.
type Dims map[string]int64

func (d *Dims) String() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(*d)) {
		words = append(words, fmt.Sprintf("%s=%d", name, (*d)[name]))
	}
	return strings.Join(words, ",")
}

// Set adds one size.
func (d *Dims) Set(text string) error {
	at := strings.LastIndex(text, "=") // names may contain =
	if at < 1 {
		return errors.New("want NAME=SIZE, e.g. batch=8")
	}
	n, err := strconv.ParseInt(text[at+1:], 10, 64)
	if err != nil || n < 0 {
		return errors.New("want NAME=SIZE, e.g. batch=8")
	}
	if *d == nil {
		*d = Dims{}
	}
	(*d)[text[:at]] = n
	return nil
}
