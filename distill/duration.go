package distill

import (
	"errors"
	"time"
)

// A Duration is a span of time. As an option it is text such as 90s, 5m or 1h30m.
type Duration time.Duration

// String is empty for 0.
func (d *Duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Set parses a positive duration.
func (d *Duration) Set(text string) error {
	x, err := time.ParseDuration(text)
	if err != nil || x <= 0 {
		return errors.New("invalid duration; use e.g. 90s, 5m or 1h30m")
	}
	*d = Duration(x)
	return nil
}
