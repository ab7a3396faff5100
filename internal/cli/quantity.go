package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Quantity is a flag's number of things: 7B is 7·10^9.
type Quantity int64

// mostOf is what a quantity cannot exceed.
const mostOf = 1e15

// powers are the letters behind a number, in either case.
const powers = "KMBT"

func (q *Quantity) String() string {
	if *q == 0 {
		return ""
	}
	return fmt.Sprint(int64(*q))
}

// Set takes a positive number with or without a letter.
func (q *Quantity) Set(text string) error {
	number, factor := strings.ToUpper(strings.TrimSpace(text)), 1.0
	if n := len(number); n > 0 && strings.Contains(powers, number[n-1:]) {
		factor = math.Pow(1000, float64(1+strings.Index(powers, number[n-1:])))
		number = number[:n-1]
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || !(x*factor >= 1) || x*factor > mostOf {
		return errors.New("no number of parameters: see 7B (7·10^9), 350M, 1.3e9")
	}
	*q = Quantity(math.Round(x * factor))
	return nil
}
