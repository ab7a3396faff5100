package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
)

// JSON writes r in its JSON form: keys in the order of the fields, two spaces of
// indentation, a newline at the end.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Read reads the JSON form of the same schema version. Unknown fields are ignored.
func Read(rd io.Reader) (*Report, error) {
	r := &Report{}
	if err := json.NewDecoder(rd).Decode(r); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	if r.SchemaVersion != SchemaVersion {
		return nil, fmt.Errorf("report: schema version %d, want %d", r.SchemaVersion, SchemaVersion)
	}
	return r, nil
}

// digest is the SHA-256 of r without its environment.
func (r *Report) digest() (string, error) {
	bare := *r
	bare.Digest, bare.Environment = "", nil
	h := sha256.New()
	if err := bare.JSON(h); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
