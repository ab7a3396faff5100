package calibrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/pass"
)

// A Summary is the calibration result of one value.
type Summary struct {
	Range
	Variance float64   `json:"variance,omitempty"` // around the channel means
	Means    []float64 `json:"means,omitempty"`    // by channel, for inputs of layers with a bias
}

// A File holds summaries by value name, as JSON.
type File struct {
	Version int `json:"version"`
	// Minimum SQNR in dB of a quantized value; values below it stay in float.
	SQNR   float64            `json:"activation_sqnr"`
	Values map[string]Summary `json:"values"`
}

// version is the version of the file format.
const version = 1

// Load reads a file of activation ranges.
func Load(path string) (*File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, plain(path, err)
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	text, err := bounded.ReadRegular(path, math.MaxInt64)
	if err != nil {
		return nil, plain(path, err)
	}
	var f File
	if err := bounded.JSON(text, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.Version != version {
		return nil, fmt.Errorf("%s: format version %d; supported: %d", path, f.Version, version)
	}
	for name, s := range f.Values {
		// Zero points of such ranges would be outside of the quantized data type.
		if s.Min > 0 || s.Max < 0 {
			return nil, fmt.Errorf("%s: value %q: the range %v to %v does not contain zero", path, name, s.Min, s.Max)
		}
	}
	return &f, nil
}

// Save writes summaries to a file, one line per value, sorted by name.
func Save(s *pass.Step, path string, minSQNR float64, values map[string]Summary) error {
	if s.Env.DryRun {
		return nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"version\": %d, \"activation_sqnr\": %v, \"values\": {", version, minSQNR)
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
	// Published with the model, so that a run that fails leaves no ranges of it.
	if s.Env.WriteFile != nil {
		return s.Env.WriteFile(path, b.Bytes())
	}
	return atomicfile.Write(path, atomicfile.Access{}, func(w io.Writer) error {
		_, err := w.Write(b.Bytes())
		return err
	})
}

// plain is err without the name of the system call.
func plain(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", path, pe.Err)
	}
	return err
}
