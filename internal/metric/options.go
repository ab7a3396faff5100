package metric

import (
	"fmt"
	"strconv"
)

// options are values of the options of a metric.
type options map[string]string

// number is the option of that name as a number from lo to hi, or otherwise if it is empty.
func (o options) number(name string, lo, hi, otherwise float64) (float64, error) {
	if o[name] == "" {
		return otherwise, nil
	}
	x, err := strconv.ParseFloat(o[name], 64)
	if err != nil || !(x >= lo && x <= hi) {
		return 0, fmt.Errorf("%s=%s: must be a number from %g to %g", name, o[name], lo, hi)
	}
	return x, nil
}
