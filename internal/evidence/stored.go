package evidence

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// A Stored is the files of an artifact in a registry. Digests are those of the registry: models are not downloaded.
type Stored struct{ *registry.Stored }

// Names are the names of all files.
func (s Stored) Names(context.Context) ([]string, error) {
	var names []string
	for _, f := range s.Files {
		names = append(names, f.Name)
	}
	return names, nil
}

// Digest is that of the registry.
func (s Stored) Digest(_ context.Context, name string) (string, int64, error) {
	f, err := s.find(name)
	return f.SHA256, f.Size, err
}

// Read downloads a document.
func (s Stored) Read(ctx context.Context, name string) ([]byte, error) {
	f, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return s.Stored.Read(ctx, f, MaxDocument)
}

// Packed are not read.
func (s Stored) Packed(context.Context, string) ([]report.File, error) {
	return nil, fmt.Errorf("%w: the packed model was not downloaded", ErrAbsent)
}

// Model is not read.
func (s Stored) Model(context.Context, string) (report.Model, error) {
	return report.Model{}, fmt.Errorf("%w: the model was not downloaded", ErrAbsent)
}

func (s Stored) find(name string) (registry.File, error) {
	i := slices.IndexFunc(s.Files, func(f registry.File) bool { return f.Name == name })
	if i < 0 {
		return registry.File{}, fmt.Errorf("%s: %s: %w", s.Reference, name, fs.ErrNotExist)
	}
	return s.Files[i], nil
}
