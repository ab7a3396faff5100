package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Quantity is a flag for a number of parameters: 7B is 7·10^9.
type Quantity int64

// maxQuantity is the maximum of a quantity.
const maxQuantity = 1e15

// powers are the suffixes of a number, in either case.
const powers = "KMBT"

func (q *Quantity) String() string {
	if *q == 0 {
		return ""
	}
	return fmt.Sprint(int64(*q))
}

// Set accepts a positive number with or without a letter.
func (q *Quantity) Set(text string) error {
	number, factor := strings.ToUpper(strings.TrimSpace(text)), 1.0
	if n := len(number); n > 0 && strings.Contains(powers, number[n-1:]) {
		factor = math.Pow(1000, float64(1+strings.Index(powers, number[n-1:])))
		number = number[:n-1]
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !(x*factor >= 1) || x*factor > maxQuantity {
		return errors.New("want a number of parameters, e.g. 7B (7·10^9), 350M or 1.3e9")
	}
	*q = Quantity(math.Round(x * factor))
	return nil
}
