package sign

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// keyOf is a new key of a curve.
func keyOf(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// What cannot be read or signed is an error, never a signature over less.
func TestWhatCannotBeSigned(t *testing.T) {
	dir, key := t.TempDir(), keyOf(t, elliptic.P256())
	write(t, filepath.Join(dir, "one", "a"), "x")
	write(t, filepath.Join(dir, "text.onnx"), "no model")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "empty"), 0o755),
		os.Mkdir(filepath.Join(dir, "dangling"), 0o755)); err != nil {
		t.Fatal(err)
	}
	one := Files{Root: filepath.Join(dir, "one")}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	sign := func(ctx context.Context, key *ecdsa.PrivateKey, f Files, o Options) error {
		_, _, err := Sign(ctx, key, f, filepath.Join(dir, "s.sig"), o)
		return err
	}
	if err := sign(t.Context(), key, one, Options{}); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no folder": {sign(t.Context(), key, Files{Root: filepath.Join(dir, "none")}, Options{}), "no such file"},
		"empty folder": {sign(t.Context(), key, Files{Root: filepath.Join(dir, "empty")}, Options{}),
			"a folder without files"},
		"missing name": {sign(t.Context(), key, Files{Root: one.Root, Names: []string{"a", "b"}}, Options{}), "no such file"},
		"interrupted":  {sign(ended, key, one, Options{}), "context canceled"},
		"curve":        {sign(t.Context(), keyOf(t, elliptic.P224()), one, Options{}), "P-224 is not supported"},
		"no model": {func() error {
			_, err := FilesOf(t.Context(), filepath.Join(dir, "text.onnx"))
			return err
		}(), "text.onnx"},
		"outside": {func() error {
			_, err := ofModel(filepath.Join(dir, "one", "a"), []string{filepath.Join(dir, "text.onnx")})
			return err
		}(), "outside of the folder"},
		"digest": {func() error { _, err := newStatement(dir, []File{{"a", "no digits"}}); return err }(), "invalid byte"},
		"sums":   {func() error { _, err := one.sums(t.Context(), []string{"b"}, nil); return err }(), "no such file"},
		"verified by": {func() error {
			_, err := Open([]byte(`{"dsseEnvelope": {"payloadType": "`+payloadType+`", "signatures": [{}]}}`),
				&keyOf(t, elliptic.P224()).PublicKey)
			return err
		}(), "P-224 is not supported"},
		"custom curve": {func() error {
			p := elliptic.P256().Params()
			_, err := Fingerprint(&ecdsa.PublicKey{Curve: p, X: p.Gx, Y: p.Gy})
			return err
		}(), "curve"},
		"no signature": {func() error {
			_, err := Verify(t.Context(), &key.PublicKey, filepath.Join(dir, "none.sig"), one, nil)
			return err
		}(), "no such file"},
		"dangling link": {func() error {
			if err := os.Symlink("nowhere", filepath.Join(dir, "dangling", "a")); err != nil {
				return errors.New("no such file: links are not supported here")
			}
			return sign(t.Context(), key, Files{Root: filepath.Join(dir, "dangling")}, Options{Symlinks: true})
		}(), "no such file"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, c.err, c.want)
		}
	}
}

// Files that cannot be read while they are verified are errors, not mismatches, and no match either.
func TestWhatCannotBeVerified(t *testing.T) {
	private, public := newKey(t, elliptic.P256())
	dir, path := newFolder(t), filepath.Join(t.TempDir(), "s")
	signFolder(t, dir, path, private)
	key, err := PublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken disk")
	if _, err := Verify(t.Context(), key, path, Files{Root: dir}, func(context.Context, string) (string, error) {
		return "", broken
	}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err := Verify(t.Context(), key, path, Files{Root: filepath.Join(dir, "none")}, nil); err == nil {
		t.Error("a folder that is not there is verified")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Verify(ended, key, path, Files{Root: dir}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	// The signature itself may have been moved into the folder.
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "moved.sig"), string(text))
	if got := mismatches(t, Files{Root: dir}, filepath.Join(dir, "moved.sig"), public); got != nil {
		t.Errorf("a signature that was moved into the folder: %q", got)
	}
	// A model that was signed as a single file, without one.
	single := &Signed{Files: []File{{".", strings.Repeat("ab", 32)}}}
	found, err := single.Compare(t.Context(), nil, func(context.Context, string) (string, error) {
		return "", os.ErrNotExist
	})
	if err != nil || len(found) != 1 || found[0].String() != ".: signed, but missing" {
		t.Errorf("got %v, %v", found, err)
	}
}

// Names are sorted as text, whatever folders they are in, as model-signing sorts them.
func TestOrderOfNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/x", "a-b", "a.c", "b"} {
		write(t, filepath.Join(dir, name), name)
	}
	got, err := Files{Root: dir}.list(nil)
	if want := []string{"a-b", "a.c", "a/x", "b"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for path, want := range map[string]string{"a/x": "a/x", "s.sig": "s.sig", "../s.sig": ""} {
		if got := strings.Join((Files{Root: dir}).ownName(filepath.Join(dir, path)), " "); got != want {
			t.Errorf("the name of %s is %q", path, got)
		}
	}
}

// The signature of a model below a folder with configuration covers the model's own folder only.
func TestModelBelowConfiguration(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "mlp.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "onnx", "mlp.onnx"), string(data))
	write(t, filepath.Join(dir, "config.json"), "{}")
	files, err := FilesOf(t.Context(), filepath.Join(dir, "onnx", "mlp.onnx"))
	if err != nil || !slices.Equal(files.Names, []string{"mlp.onnx"}) || files.Root != filepath.Join(dir, "onnx") {
		t.Errorf("got %+v, %v", files, err)
	}
	if got := DefaultPath(filepath.Join(dir, "onnx")); got != filepath.Join(dir, "onnx", "model.sig") {
		t.Errorf("the signature of a folder is %s", got)
	}
	if got := DefaultPath(filepath.Join(dir, "mlp.onnx")); got != filepath.Join(dir, "mlp.sig") {
		t.Errorf("the signature of a model that is not there yet is %s", got)
	}
}

// A signature or key is read up to a limit, which it may have.
func TestLimitOfSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for size, allowed := range map[int]bool{9: true, 10: true, 11: false, 1000: false} {
		write(t, path, strings.Repeat("x", size))
		text, err := readFile(path, 10)
		if allowed && (err != nil || len(text) != size) ||
			!allowed && (err == nil || !strings.Contains(err.Error(), "larger than 10 bytes")) {
			t.Errorf("%d bytes: %d, %v", size, len(text), err)
		}
	}
}
