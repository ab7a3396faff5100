// Package reported reads parts of reports: those of large models have hundreds of megabytes, of which clients of
// registries need a few fields.
package reported

import (
	"encoding/json"
	"errors"
	"io"
)

// A Change is a number before and after compression.
type Change struct{ Before, After int64 }

// Decode decodes the values of some keys of an object, and skips the others. It stops when it has all.
func Decode(r io.Reader, fields map[string]any) error {
	d := json.NewDecoder(r)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(errors.New("not a report"), err)
	}
	for found := 0; found < len(fields) && d.More(); {
		key, err := d.Token()
		if err != nil {
			return err
		}
		to, wanted := fields[key.(string)]
		if !wanted {
			if err := skip(d); err != nil {
				return err
			}
			continue
		}
		found++
		if err := d.Decode(to); err != nil {
			return err
		}
	}
	return nil
}

// skip reads one value by its tokens, none of which is large.
func skip(d *json.Decoder) error {
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
