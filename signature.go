package mcompress

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/sign"
)

// SignOptions are the options of Sign.
type SignOptions struct {
	Key        string                 // private key: a file or env:NAME, elliptic curve P-256, P-384 or P-521 as PEM
	Passphrase func() ([]byte, error) // decrypts the key; may be nil for one that is not encrypted
	Output     string                 // path of the signature; empty for NAME.sig, or model.sig in a folder
	Symlinks   bool                   // sign the files that symbolic links name; otherwise they are an error
	Events     Events                 // Progress
}

// A Signature is a written signature.
type Signature struct {
	Path  string       `json:"signature"`
	Key   string       `json:"key_sha256"` // of the public key as PEM
	Files []SignedFile `json:"files"`
}

// A SignedFile is a file that a signature covers.
type SignedFile struct {
	Name   string `json:"name"` // in the folder, with slashes
	SHA256 string `json:"sha256"`
}

// keyError is an error of a key, unless a file could not be read.
func keyError(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return err
	}
	return fieldErrorf("{Key}: %w", err)
}

// Sign signs a model with its external data and its reports, or all files of a folder, in the format of OpenSSF Model
// Signing v1.0. VerifyReports and model-signing verify it.
func Sign(ctx context.Context, path string, o SignOptions) (*Signature, error) {
	if o.Key == "" {
		return nil, fieldErrorf("{Key} is required")
	}
	if o.Output == "" {
		o.Output = sign.DefaultPath(path)
	}
	phrase := o.Passphrase
	if phrase == nil {
		phrase = func() ([]byte, error) { return nil, errors.New("the key is encrypted") }
	}
	key, err := sign.PrivateKey(o.Key, phrase)
	if err != nil {
		return nil, keyError(err)
	}
	files, err := sign.FilesOf(ctx, path)
	if err != nil {
		return nil, err
	}
	show, end := o.Events.stage(path, StageTransfer)
	bundle, list, err := sign.Sign(ctx, key, files, o.Output, sign.Options{Symlinks: o.Symlinks, Progress: show})
	end()
	if err != nil {
		return nil, err
	}
	return writeSignature(o.Output, &key.PublicKey, files.Root, bundle, list)
}

// writeSignature writes the bundle of a signature over files below root, with their permissions.
func writeSignature(path string, key *ecdsa.PublicKey, root string, bundle []byte,
	list []sign.File) (*Signature, error) {
	s := &Signature{Path: path}
	var paths []string
	for _, f := range list {
		paths = append(paths, filepath.Join(root, filepath.FromSlash(f.Name)))
		s.Files = append(s.Files, SignedFile(f))
	}
	access, err := atomicfile.Like(paths...)
	if err != nil {
		return nil, err
	}
	if s.Key, err = sign.Fingerprint(key); err != nil {
		return nil, fmt.Errorf("the fingerprint of the key: %w", err)
	}
	return s, atomicfile.Write(path, access, func(w io.Writer) error {
		_, err := w.Write(bundle)
		return err
	})
}
