package calibrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/mcompress/mcompress/pass"
)

// A file is ranges by the names of values, as JSON: keys are sorted.
type file struct {
	Version int              `json:"version"`
	Ranges  map[string]Range `json:"ranges"`
}

// version is that of the files.
const version = 1

// Load reads ranges from a file.
func Load(path string) (map[string]Range, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, plain(path, err)
	}
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.Version != version {
		return nil, fmt.Errorf("%s: its version is %d; version %d is read", path, f.Version, version)
	}
	for name, r := range f.Ranges {
		if !(r.Min <= r.Max) {
			return nil, fmt.Errorf("%s: value %q: no range goes from %v to %v", path, name, r.Min, r.Max)
		}
	}
	return f.Ranges, nil
}

// Save writes ranges to a file.
func Save(c *pass.Context, path string, ranges map[string]Range) error {
	if c.DryRun {
		return nil
	}
	text, err := json.MarshalIndent(file{version, ranges}, "", "  ")
	if err != nil {
		return err
	}
	return plain(path, os.WriteFile(path, append(text, '\n'), 0o666))
}

// plain is err without the name of the system call.
func plain(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", path, pe.Err)
	}
	return err
}
