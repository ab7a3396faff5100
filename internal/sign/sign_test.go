package sign

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/digest"
)

// newKey writes a key pair and returns the paths of the private and the public key.
func newKey(t *testing.T, curve elliptic.Curve) (private, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	return writePEM(t, filepath.Join(dir, "key.pem"), "EC PRIVATE KEY", der),
		writePEM(t, filepath.Join(dir, "key.pub"), "PUBLIC KEY", pub)
}

func writePEM(t *testing.T, path, kind string, der []byte) string {
	t.Helper()
	write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// newFolder is a folder of files that model-signing treats differently.
func newFolder(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"model.onnx": "weights", "onnx/model_q4.onnx": "few bits", "onnx.txt": "x", "a b/ünïcode.bin": "", ".hidden": "y",
		"sub/.gitignore": "signed",
		".git/HEAD":      "not signed", ".gitattributes": "*.onnx filter=lfs", ".github/w.yml": "no", ".gitignore": "z",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

// signFolder signs all of a folder into path.
func signFolder(t *testing.T, dir, path, private string) {
	t.Helper()
	key, err := PrivateKey(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := Sign(t.Context(), key, Files{Root: dir}, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(text))
}

// mismatches are those of a folder or of files of it, as text.
func mismatches(t *testing.T, f Files, path, public string) []string {
	t.Helper()
	key, err := PublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	found, err := Verify(t.Context(), key, path, f, nil)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range found {
		texts = append(texts, m.String())
	}
	return texts
}

// Each side verifies the signatures of the other, and both notice every change.
func TestInteroperability(t *testing.T) {
	oracle := conform.Start(t)
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		private, public := newKey(t, curve)
		_, other := newKey(t, curve)
		for signer, sign := range map[string]func(dir, path string){
			"mcompress": func(dir, path string) { signFolder(t, dir, path, private) },
			"model-signing": func(dir, path string) {
				if err := oracle.Sign(dir, path, private); err != nil {
					t.Fatal(err)
				}
			},
		} {
			t.Run(curve.Params().Name+"/"+signer, func(t *testing.T) {
				for name, change := range map[string]struct {
					apply func(dir string)
					want  []string
				}{
					"unchanged": {func(string) {}, nil},
					"ignored":   {func(dir string) { write(t, filepath.Join(dir, ".git", "index"), "new") }, nil},
					"byte": {func(dir string) {
						write(t, filepath.Join(dir, "model.onnx"), "Weights")
					}, []string{"model.onnx: the content is not what was signed"}},
					"added": {func(dir string) { write(t, filepath.Join(dir, "new"), "") }, []string{"new: not signed"}},
					"removed": {func(dir string) {
						remove(t, filepath.Join(dir, "onnx.txt"))
					}, []string{"onnx.txt: signed, but missing"}},
					"in ignored's name": {func(dir string) {
						write(t, filepath.Join(dir, ".gitignored"), "")
					}, []string{".gitignored: not signed"}},
					"ignored below": {func(dir string) {
						remove(t, filepath.Join(dir, "sub", ".gitignore"))
					}, []string{"sub/.gitignore: signed, but missing"}},
					"renamed": {func(dir string) {
						rename(t, filepath.Join(dir, "onnx.txt"), filepath.Join(dir, "onnx.md"))
					}, []string{"onnx.md: not signed", "onnx.txt: signed, but missing"}},
					"link for the file": {func(dir string) {
						link(t, filepath.Join(dir, "onnx.txt"))
					}, []string{"onnx.txt: a symbolic link, which is not signed", "target: not signed"}},
					"folder for a file": {func(dir string) {
						remove(t, filepath.Join(dir, "onnx.txt"))
						write(t, filepath.Join(dir, "onnx.txt/x"), "x")
					}, []string{"onnx.txt: not a regular file", "onnx.txt/x: not signed"}},
				} {
					dir := newFolder(t)
					path := filepath.Join(dir, "model.sig")
					sign(dir, path)
					change.apply(dir)
					if diff := cmp.Diff(change.want, mismatches(t, Files{Root: dir}, path, public)); diff != "" {
						t.Errorf("%s: %s", name, diff)
					}
					if err := oracle.VerifySignature(dir, path, public, false); (err == nil) != (change.want == nil) {
						t.Errorf("%s: model-signing: %v", name, err)
					}
				}
				dir := newFolder(t)
				path := filepath.Join(t.TempDir(), "elsewhere.sig")
				sign(dir, path)
				if got := mismatches(t, Files{Root: dir}, path, public); got != nil {
					t.Errorf("a signature outside of the folder: %q", got)
				}
				if got := mismatches(t, Files{Root: dir}, path, other); len(got) != 1 ||
					!strings.Contains(got[0], "not signed with this key") {
					t.Errorf("another key: got %q", got)
				}
				if err := oracle.VerifySignature(dir, path, other, false); err == nil {
					t.Error("another key: model-signing verified it")
				}
			})
		}
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// link moves a file and puts a symbolic link to it in its place.
func link(t *testing.T, path string) {
	t.Helper()
	rename(t, path, filepath.Join(filepath.Dir(path), "target"))
	if err := os.Symlink("target", path); err != nil {
		t.Skip(err)
	}
}

// A model is verified in a folder with other things: the signature covers its files, and all of its files have to be
// covered.
func TestModelInAFolder(t *testing.T) {
	oracle := conform.Start(t)
	private, public := newKey(t, elliptic.P256())
	dir := t.TempDir()
	for _, name := range []string{"external.onnx", "external_a.bin", "external_b.bin"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "fixtures", name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(data))
	}
	for _, name := range []string{"external.report.json", "external.report.md", "external.report.html",
		"external.environment.json", "other.onnx", "other.report.json"} {
		write(t, filepath.Join(dir, name), "text")
	}
	model := filepath.Join(dir, "external.onnx")
	files, err := FilesOf(t.Context(), model)
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(slices.Values(files.Names))
	if want := []string{"external.onnx", "external.report.json", "external.report.md", "external_a.bin",
		"external_b.bin"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	key, err := PrivateKey(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	path := DefaultPath(model)
	var done, total atomic.Int64
	text, list, err := Sign(t.Context(), key, files, path, Options{Progress: func(d, n int64) {
		done.Store(max(d, done.Load()))
		total.Store(n)
	}})
	if err != nil || len(list) != 5 {
		t.Fatalf("%d files, %v", len(list), err)
	}
	if done.Load() != total.Load() || total.Load() == 0 {
		t.Errorf("progress ends at %d of %d bytes", done.Load(), total.Load())
	}
	if again, _, err := Sign(t.Context(), key, files, path, Options{}); err != nil || !bytes.Equal(again, text) {
		t.Errorf("the second signature differs: %v", err)
	}
	write(t, path, string(text))
	if got := mismatches(t, files, path, public); got != nil {
		t.Errorf("got %q", got)
	}
	if err := oracle.VerifySignature(dir, path, public, true); err != nil {
		t.Errorf("model-signing: %v", err)
	}
	if err := oracle.VerifySignature(dir, path, public, false); err == nil {
		t.Error("model-signing verified a folder with unsigned files")
	}

	write(t, filepath.Join(dir, "external.cdx.json"), "added")
	data, err := os.ReadFile(filepath.Join(dir, "external_b.bin"))
	if err != nil {
		t.Fatal(err)
	}
	data[200]++
	write(t, filepath.Join(dir, "external_b.bin"), string(data))
	remove(t, filepath.Join(dir, "external.report.md"))
	if files, err = FilesOf(t.Context(), model); err != nil {
		t.Fatal(err)
	}
	want := []string{"external.cdx.json: not signed", "external.report.md: signed, but missing",
		"external_b.bin: the content is not what was signed"}
	if diff := cmp.Diff(want, mismatches(t, files, path, public)); diff != "" {
		t.Error(diff)
	}
	if err := oracle.VerifySignature(dir, path, public, true); err == nil {
		t.Error("model-signing verified changed files")
	}
}

// A model in a folder with configuration is signed with it, and without other signatures.
func TestModelWithConfiguration(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "mlp.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "mlp.onnx"), string(data))
	for _, name := range []string{"config.json", "tokenizer.json", "mlp.report.json", "mlp.sig", "model.sig", "own.txt"} {
		write(t, filepath.Join(dir, name), "{}")
	}
	private, _ := newKey(t, elliptic.P256())
	key, err := PrivateKey(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := FilesOf(t.Context(), filepath.Join(dir, "mlp.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	_, signed, err := Sign(t.Context(), key, files, filepath.Join(dir, "own.txt"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range signed {
		names = append(names, f.Name)
	}
	if want := []string{"mlp.onnx", "config.json", "tokenizer.json", "mlp.report.json"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// model-signing names a model that is signed as a single file ".".
func TestSignatureOfASingleFile(t *testing.T) {
	oracle := conform.Start(t)
	private, public := newKey(t, elliptic.P256())
	dir := t.TempDir()
	model, path := filepath.Join(dir, "m.onnx"), filepath.Join(dir, "m.sig")
	write(t, model, "weights")
	if err := oracle.Sign(model, path, private); err != nil {
		t.Fatal(err)
	}
	files := Files{Root: dir, Names: []string{"m.onnx"}}
	if got := mismatches(t, files, path, public); got != nil {
		t.Errorf("got %q", got)
	}
	write(t, model, "Weights")
	if got := mismatches(t, files, path, public); len(got) != 1 {
		t.Errorf("changed: got %q", got)
	}
}

// The place of a digest is the caller's: a Git LFS pointer has that of the file it represents.
func TestDigestOfTheCaller(t *testing.T) {
	private, public := newKey(t, elliptic.P256())
	dir, path := newFolder(t), filepath.Join(t.TempDir(), "s")
	signFolder(t, dir, path, private)
	key, err := PublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	found, err := Verify(t.Context(), key, path, Files{Root: dir}, func(ctx context.Context, path string) (string, error) {
		if filepath.Base(path) == "onnx.txt" {
			return strings.Repeat("0", 64), nil
		}
		sum, _, err := digest.File(ctx, path, nil)
		return sum, err
	})
	if err != nil || len(found) != 1 || found[0].File != "onnx.txt" {
		t.Errorf("got %v, %v", found, err)
	}
	// A file that is not there has no digest, whatever the caller knows of it.
	_, sums, err := Sign(t.Context(), keyOf(t, elliptic.P256()), Files{Root: dir}, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	remove(t, filepath.Join(dir, "onnx.txt"))
	found, err = Verify(t.Context(), key, path, Files{Root: dir}, func(_ context.Context, path string) (string, error) {
		i := slices.IndexFunc(sums, func(f File) bool { return filepath.Join(dir, filepath.FromSlash(f.Name)) == path })
		return sums[i].SHA256, nil
	})
	if err != nil || len(found) != 1 || found[0].String() != "onnx.txt: signed, but missing" {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestSymbolicLinks(t *testing.T) {
	private, public := newKey(t, elliptic.P256())
	dir, path := newFolder(t), filepath.Join(t.TempDir(), "s")
	link(t, filepath.Join(dir, "onnx.txt"))
	key, err := PrivateKey(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Sign(t.Context(), key, Files{Root: dir}, path, Options{}); err == nil ||
		!strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("got %v", err)
	}
	text, _, err := Sign(t.Context(), key, Files{Root: dir}, path, Options{Symlinks: true})
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(text))
	if got := mismatches(t, Files{Root: dir}, path, public); got != nil {
		t.Errorf("got %q", got)
	}
	write(t, filepath.Join(dir, "target"), "changed")
	if got := mismatches(t, Files{Root: dir}, path, public); len(got) != 2 {
		t.Errorf("changed target: got %q", got)
	}
	if err := os.Symlink("sub", filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Sign(t.Context(), key, Files{Root: dir}, path, Options{Symlinks: true}); err == nil ||
		!strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a link to a folder: got %v", err)
	}
}

// A second signature does not cover the first one of the same name, but one of another name.
func TestSigningTwice(t *testing.T) {
	private, public := newKey(t, elliptic.P256())
	dir := newFolder(t)
	first, second := filepath.Join(dir, "model.sig"), filepath.Join(dir, "second.sig")
	signFolder(t, dir, first, private)
	signFolder(t, dir, first, private)
	if got := mismatches(t, Files{Root: dir}, first, public); got != nil {
		t.Errorf("got %q", got)
	}
	signFolder(t, dir, second, private)
	remove(t, first)
	if got := mismatches(t, Files{Root: dir}, second, public); !slices.Equal(got,
		[]string{"model.sig: signed, but missing"}) {
		t.Errorf("got %q", got)
	}
}
