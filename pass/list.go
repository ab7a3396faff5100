package pass

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A List is an option of several words. Its text is separated by commas; as a flag it may be repeated, which appends.
type List []string

// String returns the items, separated by commas.
func (l *List) String() string { return strings.Join(*l, ",") }

// Set appends items.
func (l *List) Set(text string) error {
	if text != "" || len(*l) > 0 {
		*l = append(slices.Clip(*l), strings.Split(text, ",")...) // clipped: copies of an option struct share the elements
	}
	return nil
}

// Numbers is an option of several numbers, whose text is separated by commas.
type Numbers []float64

// String returns the numbers, separated by commas.
func (ns *Numbers) String() string {
	return joined(*ns, func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) })
}

// Set replaces the numbers.
func (ns *Numbers) Set(text string) (err error) {
	*ns, err = parsed(text, func(item string) (float64, error) { return strconv.ParseFloat(item, 64) })
	return err
}

// Sizes is an option of several sizes, whose text is separated by commas.
type Sizes []int64

// String returns the sizes, separated by commas.
func (ns *Sizes) String() string {
	return joined(*ns, func(n int64) string { return strconv.FormatInt(n, 10) })
}

// Set replaces the sizes.
func (ns *Sizes) Set(text string) (err error) {
	*ns, err = parsed(text, func(item string) (int64, error) { return strconv.ParseInt(item, 10, 64) })
	return err
}

func joined[T any](list []T, text func(T) string) string {
	items := make([]string, len(list))
	for i, x := range list {
		items[i] = text(x)
	}
	return strings.Join(items, ",")
}

// parsed parses the items of a list as numbers.
func parsed[T any](text string, parse func(string) (T, error)) ([]T, error) {
	if text == "" {
		return nil, nil
	}
	var out []T
	for item := range strings.SplitSeq(text, ",") {
		x, err := parse(strings.TrimSpace(item))
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", item)
		}
		out = append(out, x)
	}
	return out, nil
}
