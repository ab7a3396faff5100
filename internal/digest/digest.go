// Package digest computes digests of files.
package digest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/mcompress/mcompress/internal/remote"
	"github.com/mcompress/mcompress/ir"
)

// File is the SHA-256 of a regular file at a path or URL, in hexadecimal, and its size in bytes. It reads the file in
// blocks of ir.CopyBuffer, which it also writes to progress unless that is nil, and returns the cause of ctx once that
// is done.
func File(ctx context.Context, path string, progress io.Writer) (sum string, size int64, err error) {
	f, size, err := remote.OpenFile(ctx, path)
	if err != nil {
		return "", 0, err
	}
	return sumOf(ctx, f, size, path, progress)
}

// FileOfSize is File for a file that is expected to have a size: one of another size is not read, and its digest is
// empty. That of an object in storage is the one that was stored with it, if there is one.
func FileOfSize(ctx context.Context, path string, expected int64) (sum string, size int64, err error) {
	f, size, err := remote.OpenFile(ctx, path)
	if err != nil {
		return "", 0, err
	}
	if o, ok := f.(*remote.File); ok {
		sum = o.SHA256()
	}
	if sum != "" || size != expected {
		return sum, size, f.Close()
	}
	return sumOf(ctx, f, size, path, nil)
}

// sumOf digests and closes f.
func sumOf(ctx context.Context, f remote.Reader, size int64, path string, progress io.Writer) (string, int64, error) {
	defer f.Close()
	h := sha256.New()
	var w io.Writer = h
	if progress != nil {
		w = io.MultiWriter(h, progress)
	}
	if err := ir.Copy(ctx, w, f, size); err != nil {
		return "", 0, fmt.Errorf("%s: %w", remote.Shown(path), err)
	}
	return hex.EncodeToString(h.Sum(nil)), size, context.Cause(ctx)
}
