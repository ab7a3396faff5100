package cli

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Numbers is a flag's list of numbers, with commas: 0.5,1e-3.
type Numbers []float64

func (n *Numbers) String() string {
	words := make([]string, len(*n))
	for i, x := range *n {
		words[i] = fmt.Sprint(x)
	}
	return strings.Join(words, ",")
}

// Set replaces earlier values.
func (n *Numbers) Set(text string) error {
	*n = nil
	for word := range strings.SplitSeq(text, ",") {
		x, err := number(strings.TrimSpace(word))
		if err != nil {
			return errors.New("want numbers separated by commas, e.g. 0.485,0.456,0.406")
		}
		*n = append(*n, x)
	}
	return nil
}

// Words is a flag's list of words, with commas.
type Words []string

func (w *Words) String() string { return strings.Join(*w, ",") }

// Set replaces earlier values.
func (w *Words) Set(text string) error {
	*w = strings.Split(text, ",")
	if slices.Contains(*w, "") {
		return errors.New("empty name in the list")
	}
	return nil
}

// Values is a flag that may be given several times: NAME=NUMBER.
type Values map[string]float64

func (v *Values) String() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(*v)) {
		words = append(words, fmt.Sprintf("%s=%g", name, (*v)[name]))
	}
	return strings.Join(words, ",")
}

// Set adds one number.
func (v *Values) Set(text string) error {
	at := strings.LastIndex(text, "=")
	if at < 1 {
		return errors.New("want NAME=NUMBER, e.g. mask=1")
	}
	x, err := number(text[at+1:])
	if err != nil {
		return errors.New("want NAME=NUMBER, e.g. mask=1")
	}
	if *v == nil {
		*v = Values{}
	}
	(*v)[text[:at]] = x
	return nil
}

func number(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, errors.New("not a number")
	}
	return x, nil
}
