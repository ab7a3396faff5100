package sign

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"path/filepath"
	"strings"
	"testing"
)

// A name that is not UTF-8 would be another one in the JSON of a signature, and is not signed.
func TestNameThatIsNotUTF8(t *testing.T) {
	dir := newFolder(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "model.sig")
	if _, _, err := Sign(t.Context(), key, Files{Root: dir}, path, Options{}); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a\xff.txt"), "x")
	if _, _, err := Sign(t.Context(), key, Files{Root: dir}, path, Options{}); err == nil ||
		!strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("got %v", err)
	}
}
