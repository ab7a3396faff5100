// Package reported reads parts of reports: those of large models have hundreds of megabytes, of which clients of
// registries need a few fields.
package reported

import (
	"fmt"
	"io"

	"github.com/mcompress/mcompress/internal/bounded"
)

// A Change is a number before and after compression.
type Change struct{ Before, After int64 }

// Decode decodes the values of some keys of an object, and skips the others. It stops when it has all.
func Decode(r io.Reader, fields map[string]any) error {
	if err := bounded.Members(r, fields); err != nil {
		return fmt.Errorf("not a report: %w", err)
	}
	return nil
}
