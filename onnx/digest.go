package onnx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// digestOf is the SHA-256 of r's first n bytes in hexadecimal.
func digestOf(ctx context.Context, r io.ReaderAt, n int64) (string, error) {
	h := sha256.New()
	if err := ir.Copy(ctx, h, r, n); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// SHA256 is the digest of one part.
func (p Part) SHA256(ctx context.Context) (string, error) { return digestOf(ctx, p.r, p.Size) }

// Combined is the digest of a model of several files: that of the only
// file, or of the lines that sha256sum prints for the files, model first.
func Combined(names, sums []string) string {
	if len(sums) == 1 {
		return sums[0]
	}
	var b strings.Builder
	for i := range sums {
		fmt.Fprintf(&b, "%s  %s\n", sums[i], names[i])
	}
	h := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(h[:])
}
