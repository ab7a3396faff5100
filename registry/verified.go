package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// A verifier compares content with the size and digest of a file.
type verifier struct {
	f    File
	h    hash.Hash
	read int64
}

func newVerifier(f File) *verifier { return &verifier{f: f, h: sha256.New()} }

// Write adds content. It is an error if there is more than the file has.
func (v *verifier) Write(p []byte) (int, error) {
	v.read += int64(len(p))
	if v.read > v.f.Size {
		return 0, v.wrong(fmt.Errorf("more than the %d bytes that the registry lists", v.f.Size))
	}
	return v.h.Write(p)
}

// check compares everything that was written.
func (v *verifier) check() error {
	if v.read != v.f.Size {
		return v.wrong(fmt.Errorf("%d bytes, but the registry lists %d", v.read, v.f.Size))
	}
	if sum := hex.EncodeToString(v.h.Sum(nil)); sum != v.f.SHA256 {
		return v.wrong(fmt.Errorf("SHA-256 is %.12s…, but the registry lists %.12s…", sum, v.f.SHA256))
	}
	return nil
}

func (v *verifier) wrong(err error) error { return &ContentError{v.f.Name, err} }

// A verifiedContent is a stream that ends in an error if its content is wrong.
type verifiedContent struct {
	io.ReadCloser
	v *verifier
}

// Read verifies what it returns, at the end also the digest.
func (c *verifiedContent) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if _, wrong := c.v.Write(p[:n]); wrong != nil {
		return 0, wrong
	}
	if errors.Is(err, io.EOF) {
		if wrong := c.v.check(); wrong != nil {
			return n, wrong
		}
	}
	return n, err
}
