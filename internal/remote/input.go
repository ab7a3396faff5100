package remote

import (
	"bytes"
	"context"
	"io"
	"os"
)

// ReadInput calls read with the content of a file at a path, of at most most bytes at a URL, or of standard input
// for -.
func ReadInput(ctx context.Context, path string, most int64, read func(io.Reader) error) error {
	switch {
	case Is(path):
		text, err := ReadFile(ctx, path, most)
		if err != nil {
			return err
		}
		return read(bytes.NewReader(text))
	case path == "-":
		return read(os.Stdin)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return read(f)
}
