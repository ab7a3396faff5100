package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress/internal/evidence"
	"github.com/mcompress/mcompress/internal/sign"
	"github.com/mcompress/mcompress/registry"
)

// signatureFlags are the flags of verifying a signature.
type signatureFlags struct {
	key       string
	signature string
	public    *ecdsa.PublicKey // of key; nil for none
}

func (s *signatureFlags) declare(fs *flag.FlagSet) {
	fs.StringVar(&s.key, "key", "", "public `key` of the signature, a file or env:NAME: elliptic curve as PEM")
	fs.StringVar(&s.signature, "signature", "", "`path` of the signature (default: NAME.sig next to the model, or model.sig in the folder)")
}

// open reads the public key.
func (s *signatureFlags) open() (err error) {
	if s.key == "" {
		if s.signature != "" {
			return usagef("--signature requires --key")
		}
		return nil
	}
	if s.public, err = sign.PublicKey(s.key); err != nil {
		return keyError(err)
	}
	return nil
}

// ofPath verifies the signature of a model or folder.
func (s *signatureFlags) ofPath(ctx context.Context, path string, res *evidence.Result) error {
	signature := s.signature
	if signature == "" {
		signature = sign.DefaultPath(path)
	}
	_, err := os.Stat(signature)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.signature == "":
		s.missing(filepath.Base(signature), res)
		return nil
	case err != nil:
		return err
	case s.public == nil:
		res.Unchecked = append(res.Unchecked, filepath.Base(signature)+": verified with --key only")
		return nil
	}
	files, err := s.files(ctx, path, res)
	if err != nil {
		return err
	}
	found, err := sign.Verify(ctx, s.public, signature, files, func(ctx context.Context, path string) (string, error) {
		sum, _, err := evidence.Folder(filepath.Dir(path)).Digest(ctx, filepath.Base(path))
		return sum, err
	})
	s.add(filepath.Base(signature), found, res)
	return err
}

// files are the files that a signature has to cover. A model of which only a pointer is here has those of its report.
func (s *signatureFlags) files(ctx context.Context, path string, res *evidence.Result) (sign.Files, error) {
	if evidence.IsPointer(path) {
		return sign.Files{Root: filepath.Dir(path), Names: append([]string{res.Report}, res.Files...)}, nil
	}
	return sign.FilesOf(ctx, path)
}

// ofStored verifies the signature of an artifact by the digests of the registry.
func (s *signatureFlags) ofStored(ctx context.Context, files evidence.Stored, res *evidence.Result) error {
	f, ok := files.Find(registry.Signature)
	switch {
	case !ok:
		s.missing("signature", res)
		return nil
	case s.public == nil:
		res.Unchecked = append(res.Unchecked, f.Name+": verified with --key only")
		return nil
	}
	text, err := files.Read(ctx, f.Name)
	if err != nil {
		return err
	}
	signed, err := sign.Open(text, s.public)
	if errors.Is(err, sign.ErrKey) {
		s.add(f.Name, []sign.Mismatch{{File: f.Name, Problem: err.Error()}}, res)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	var present []string
	for _, p := range files.Stored.Files {
		if !strings.HasSuffix(p.Name, sign.Suffix) && p.Role != registry.ReportPage { // the page has times of the run: sign.FilesOf leaves it out
			present = append(present, p.Name)
		}
	}
	found, err := signed.Compare(ctx, present, func(ctx context.Context, name string) (string, error) {
		sum, _, err := files.Digest(ctx, name)
		return sum, err
	})
	s.add(f.Name, found, res)
	return err
}

// missing records that there is no signature, which is a mismatch if there is a key.
func (s *signatureFlags) missing(name string, res *evidence.Result) {
	if s.public != nil {
		res.Mismatches = append(res.Mismatches, name+": no signature")
	}
}

func (s *signatureFlags) add(name string, found []sign.Mismatch, res *evidence.Result) {
	res.Checked = append(res.Checked, "signature")
	for _, m := range found {
		res.Mismatches = append(res.Mismatches, fmt.Sprintf("%s: %s: %s", name, m.File, m.Problem))
	}
}
