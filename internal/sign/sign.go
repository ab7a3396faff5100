package sign

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"path/filepath"
	"unicode/utf8"
)

// Options are those of signing.
type Options struct {
	Symlinks bool                    // follow symbolic links to files; otherwise they are an error
	Progress func(done, total int64) // bytes that are read, from several goroutines; may be nil
}

// A File is a signed file.
type File struct {
	Name   string `json:"name"` // in the folder, with slashes
	SHA256 string `json:"sha256"`
}

// Sign returns the bundle of a signature over files that is to be written to path, which it does not cover, and the
// files. It reads all of them.
func Sign(ctx context.Context, key *ecdsa.PrivateKey, files Files, path string, o Options) ([]byte, []File, error) {
	ignored := append(files.ownName(path), gitPaths()...)
	names, err := files.list(ignored)
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("%s: a folder without files", files.Root)
	}
	for _, name := range names {
		err := files.check(name, o.Symlinks)
		if !utf8.ValidString(name) {
			err = errors.New("a name that is not UTF-8")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", files.path(name), err)
		}
	}
	signed, err := files.sums(ctx, names, o.Progress)
	if err != nil {
		return nil, nil, err
	}
	s, err := newStatement(files.Root, signed)
	if err != nil {
		return nil, nil, err
	}
	s.Predicate.Serialization = serialization{
		Method:        "files",
		HashType:      "sha256",
		AllowSymlinks: o.Symlinks,
		IgnorePaths:   ignored,
	}
	text, err := seal(s, key)
	return text, signed, err
}

// newStatement names the model as its folder, as model-signing does.
func newStatement(folder string, files []File) (*statement, error) {
	s := &statement{Type: StatementType, PredicateType: predicateType}
	for _, f := range files {
		s.Predicate.Resources = append(
			s.Predicate.Resources,
			resource{Name: f.Name, Algorithm: "sha256", Digest: f.SHA256},
		)
	}
	sum, err := root(s.Predicate.Resources)
	if err != nil {
		return nil, err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return nil, err
	}
	s.Subject = []subject{{Name: filepath.Base(folder), Digest: map[string]string{"sha256": sum}}}
	return s, nil
}
