package calibrate

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
)

// Ranges that are accepted are numbers around zero.
func FuzzLoad(f *testing.F) {
	valid := `{"version": 1, "activation_sqnr": 20, "values": {"x": {"min": -1, "max": 2.5, "variance": 1, "means": [0, 1]}, "y": {"min": 0, "max": 0}}}`
	hostile.Seed(f, hostile.Some(hostile.JSON(valid), 250), valid)
	path := filepath.Join(f.TempDir(), "ranges.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		oracle.Linear.Check(t, len(text), func() {
			file, err := Load(path)
			if err != nil {
				return
			}
			for name, s := range file.Values {
				if !(s.Min <= 0 && s.Max >= 0) || math.IsInf(s.Max-s.Min, 0) {
					t.Errorf("%q: the range %v to %v is accepted", name, s.Min, s.Max)
				}
			}
		})
	})
}
