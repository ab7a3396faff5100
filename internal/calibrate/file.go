package calibrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/mcompress/mcompress/pass"
)

// A Summary is what a method keeps of a value.
type Summary struct {
	Range
	Variance float64   `json:"variance,omitempty"` // around the means of channels
	Means    []float64 `json:"means,omitempty"`    // by channel, of what layers with biases read
}

// A File is summaries by the names of values, as JSON.
type File struct {
	Version int                `json:"version"`
	Clarity float64            `json:"clarity"` // in decibels: values with less have no codes
	Values  map[string]Summary `json:"values"`
}

// version is that of the files.
const version = 1

// Load reads a file.
func Load(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, plain(path, err)
	}
	var f File
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.Version != version {
		return nil, fmt.Errorf("%s: its version is %d; version %d is read", path, f.Version, version)
	}
	for name, s := range f.Values {
		if s.Min > 0 || s.Max < 0 {
			return nil, fmt.Errorf("%s: value %q: zero does not lie between %v and %v", path, name, s.Min, s.Max)
		}
	}
	return &f, nil
}

// Save writes summaries to a file: a line a value, in the order of their names.
func Save(c *pass.Context, path string, clarity float64, values map[string]Summary) error {
	if c.DryRun {
		return nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"version\": %d, \"clarity\": %v, \"values\": {", version, clarity)
	separator := "\n"
	for _, name := range slices.Sorted(maps.Keys(values)) {
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		text, err := json.Marshal(values[name])
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s%s: %s", separator, key, text)
		separator = ",\n"
	}
	b.WriteString("\n}}\n")
	return plain(path, os.WriteFile(path, b.Bytes(), 0o666))
}

// plain is err without the name of the system call.
func plain(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", path, pe.Err)
	}
	return err
}
