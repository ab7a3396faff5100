package job

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// A RequestedOption is an option of a run as a user gave it, with the digest of the file or folder that its value
// names.
type RequestedOption struct {
	pass.Option
	SHA256 string `json:",omitempty"`
}

// Request returns the digest of a run's options and inputs, for o.Request: the given options, and the gates, the
// target and the recipe of the steps of o.
func Request(ctx context.Context, o Options, given []pass.Option) (string, error) {
	// An input whose content changes under the same name makes another request.
	o.Digest = true
	recipe, err := o.recipe(ctx, o.Steps)
	if err != nil {
		return "", err
	}
	options := make([]RequestedOption, len(given))
	for i, g := range given {
		sum, err := inputDigest(ctx, g.Value)
		var other *fs.PathError
		switch {
		case err == nil:
			g.Value = portablePath(g.Value)
		case !errors.As(err, &other): // a value that names no file is none
			return "", err
		}
		options[i] = RequestedOption{g, sum}
	}
	text, err := json.Marshal(struct {
		Options  []RequestedOption
		Recipe   *report.Recipe
		Gates    []report.Limit
		Baseline *report.Baseline
	}{options, recipe, o.Gates, o.Baseline})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}
