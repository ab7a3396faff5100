package sign

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
)

// sealed is the bundle of a statement that change has changed, signed by a new key.
func sealed(t *testing.T, change func(*statement)) (path, public string) {
	t.Helper()
	private, public := newKey(t, elliptic.P256())
	key, err := PrivateKey(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newStatement(t.TempDir(), []File{{"a", strings.Repeat("ab", 32)}})
	if err != nil {
		t.Fatal(err)
	}
	s.Predicate.Serialization = serialization{Method: "files", HashType: "sha256"}
	change(s)
	text, err := seal(s, key)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "s.sig")
	write(t, path, string(text))
	return path, public
}

func verifyError(t *testing.T, path, public string) string {
	t.Helper()
	key, err := PublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Verify(t.Context(), key, path, Files{Root: t.TempDir()}, nil)
	if err == nil {
		return ""
	}
	return err.Error()
}

// A statement that is signed, but not of the supported kind, is one clear error.
func TestStatementsThatAreNotSupported(t *testing.T) {
	for want, change := range map[string]func(*statement){
		"":             func(*statement) {},
		"is supported": func(s *statement) { s.PredicateType = "https://slsa.dev/provenance/v1" },
		`"https://in-toto.io/Statement/v0.1" about`: func(s *statement) { s.Type = "https://in-toto.io/Statement/v0.1" },
		"shards by sha256":                          func(s *statement) { s.Predicate.Serialization.Method = "shards" },
		"files by blake3":                           func(s *statement) { s.Predicate.Serialization.HashType = "blake3" },
		"2 subjects":                                func(s *statement) { s.Subject = append(s.Subject, s.Subject...) },
		`has "a" twice`: func(s *statement) {
			s.Predicate.Resources = append(s.Predicate.Resources, s.Predicate.Resources...)
		},
		"not that of its files": func(s *statement) { s.Subject[0].Digest["sha256"] = strings.Repeat("0", 64) },
		"is not that":           func(s *statement) { s.Predicate.Resources[0].Digest = "no digits" },
	} {
		path, public := sealed(t, change)
		if got := verifyError(t, path, public); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Files of git are ignored, whether the statement names them or not, as model-signing does by default.
func TestFilesOfGitAreIgnored(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".git", "HEAD"), "x")
	path, public := sealed(t, func(s *statement) {
		s.Predicate.Resources, s.Subject[0].Digest["sha256"] = nil,
			"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	})
	if got := mismatches(t, Files{Root: dir}, path, public); got != nil {
		t.Errorf("got %q", got)
	}
}

// Names of a signature never lead outside of the folder.
func TestNamesOutsideOfTheFolder(t *testing.T) {
	for _, name := range []string{"../secret", "/etc/passwd", "a/../../b", ""} {
		path, public := sealed(t, func(s *statement) { s.Predicate.Resources[0].Name = name })
		if got := mismatches(t, Files{Root: t.TempDir()}, path, public); len(got) != 1 ||
			!strings.Contains(got[0], "not a name of a file in the folder") {
			t.Errorf("%q: got %q", name, got)
		}
	}
}

func TestBundlesThatWereChanged(t *testing.T) {
	path, public := sealed(t, func(*statement) {})
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(change func(*bundle)) {
		t.Helper()
		var b bundle
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatal(err)
		}
		change(&b)
		text, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, string(text))
	}
	for name, change := range map[string]func(*bundle){
		"payload":   func(b *bundle) { b.Envelope.Payload[9]++ },
		"signature": func(b *bundle) { b.Envelope.Signatures[0].Sig[9]++ },
		"hint":      func(b *bundle) { b.Material.PublicKey.Hint = "other" },
	} {
		changed(change)
		if got := mismatches(t, Files{Root: t.TempDir()}, path, public); len(got) != 1 ||
			!strings.Contains(got[0], "s.sig: not signed with this key") {
			t.Errorf("%s: got %q", name, got)
		}
	}
	for name, change := range map[string]func(*bundle){
		"type":       func(b *bundle) { b.Envelope.PayloadType = "application/json" },
		"signatures": func(b *bundle) { b.Envelope.Signatures = nil },
	} {
		changed(change)
		if got := verifyError(t, path, public); !strings.Contains(got, "not a signature bundle with an envelope of") {
			t.Errorf("%s: got %q", name, got)
		}
	}
	for text, want := range map[string]string{"": "not a signature bundle", "{}": "with an envelope",
		"[1]": "not a signature bundle", "\x00": "not a signature bundle"} {
		write(t, path, text)
		if got := verifyError(t, path, public); !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// validStatement is a statement about no files, and one about a file.
const validStatement = `{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"m","digest":{"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}],` +
	`"predicateType":"https://model_signing/signature/v1.0","predicate":{"serialization":{"method":"files","hash_type":"sha256","allow_symlinks":false,"ignore_paths":["x"]},"resources":[]}}`

// Statements are read before the names in them are trusted.
func FuzzStatement(f *testing.F) {
	hostile.Seed(f, hostile.Some(hostile.JSON(validStatement), 250), validStatement)
	f.Fuzz(func(t *testing.T, text []byte) {
		oracle.Linear.Check(t, len(text), func() { compareStatement(t, text) })
	})
}

func compareStatement(t *testing.T, text []byte) {
	s, err := parse(text)
	if err != nil {
		return
	}
	found, err := s.Compare(t.Context(), []string{"a"}, func(_ context.Context, name string) (string, error) {
		if !filepath.IsLocal(name) {
			t.Errorf("%q is outside of the folder", name)
		}
		return "", fs.ErrNotExist
	})
	if err != nil || len(found) < len(s.byName([]string{"a"})) {
		t.Errorf("%d mismatches of %d files, %v", len(found), len(s.Files), err)
	}
}

// FuzzBundle opens bundles that nobody signed, and bundles of a right signature with other fields: what is accepted was
// signed.
func FuzzBundle(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	var s statement
	if err := json.Unmarshal([]byte(validStatement), &s); err != nil {
		f.Fatal(err)
	}
	signed, err := seal(&s, key)
	if err != nil {
		f.Fatal(err)
	}
	hostile.Seed(f, hostile.Some(hostile.JSON(string(signed)), 300), string(signed))
	f.Fuzz(func(t *testing.T, text []byte) {
		oracle.Linear.Check(t, len(text), func() {
			got, err := Open(text, &key.PublicKey)
			if err == nil && (len(got.Files) > 0 || got.Symlinks || !slices.Contains(got.Ignored, "x")) {
				t.Errorf("%+v is accepted, and was not signed", got)
			}
		})
	})
}

// A text that is no key is an error, and what is a key verifies something.
func FuzzPublicKey(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		f.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	for _, l := range hostile.Some(hostile.Binary(der), 80) {
		f.Add(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte(l.Text)}))
	}
	hostile.Seed(f, hostile.Lines(), string(text), strings.Repeat("-----BEGIN PUBLIC KEY-----\n", 1000))
	path := filepath.Join(f.TempDir(), "key.pub")
	f.Fuzz(func(t *testing.T, text []byte) {
		write(t, path, string(text))
		oracle.Linear.Check(t, len(text), func() {
			if key, err := PublicKey(path); err == nil {
				if _, err := Fingerprint(key); err != nil {
					t.Error(err)
				}
			}
		})
	})
}
