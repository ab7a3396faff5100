// Package digest computes digests of files.
package digest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/mcompress/mcompress/ir"
)

// File is the SHA-256 of a regular file, in hexadecimal, and its size in bytes. It reads the file in blocks of ir.CopyBuffer, which it also writes
// to progress unless that is nil, and returns the cause of ctx once that is done.
func File(ctx context.Context, path string, progress io.Writer) (sum string, size int64, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", 0, err
	}
	if !st.Mode().IsRegular() {
		return "", 0, fmt.Errorf("%s: not a regular file", path) // opening a pipe blocks
	}
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	var w io.Writer = h
	if progress != nil {
		w = io.MultiWriter(h, progress)
	}
	if err := ir.Copy(ctx, w, f, st.Size()); err != nil {
		return "", 0, fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), st.Size(), context.Cause(ctx)
}
