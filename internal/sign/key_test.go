package sign

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The encrypted key is openssl's: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -aes-256-cbc -pass
// pass:secret
const encryptedKey = `-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAju4yEbQpzJJgICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEGvMAnijq+wW9PA1/OT2RPgEgZBo
XH2mDE+C5W5YcU719mUDgQv3TysDtEH1BC32pSTnVKiQ6RxRDKqlFEz9BD3BzTOv
adnzIMxZ1NKHmKhrOc+VLVYAC0+o2U7s90UVHqB97V3Rgq42HqmmOFTYvljdSMkc
zJmiCk8+8EnnumB5u6JOONdG6kzK0vNSmaqMw1RUwRqNXAQnjUYpfgExzCsJ9U0=
-----END ENCRYPTED PRIVATE KEY-----
`

const encryptedPublicKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEocGn9bFM6waBX7tT11fnOFBzOYr9
ZSvNNqIoM4N2SAjySyW+yGVZdJBGqAiYjsWNSs3eTcge5NAc9j9aNJ5UAw==
-----END PUBLIC KEY-----
`

func TestPrivateKeys(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sec1, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for kind, der := range map[string][]byte{"EC PRIVATE KEY": sec1, "PRIVATE KEY": pkcs8} {
		path := writePEM(t, filepath.Join(dir, kind), kind, der)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("SIGN_TEST_KEY", "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"+
			string(text))
		for _, source := range []string{path, "env:SIGN_TEST_KEY"} {
			if got, err := PrivateKey(source, nil); err != nil || !got.Equal(key) {
				t.Errorf("%s: %v, %v", kind, got, err)
			}
		}
	}
}

func TestEncryptedKey(t *testing.T) {
	t.Setenv("SIGN_TEST_KEY", encryptedKey)
	t.Setenv("SIGN_TEST_PUB", encryptedPublicKey)
	word := func(s string) func() ([]byte, error) { return func() ([]byte, error) { return []byte(s), nil } }
	got, err := PrivateKey("env:SIGN_TEST_KEY", word("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if public, err := PublicKey("env:SIGN_TEST_PUB"); err != nil || !public.Equal(&got.PublicKey) {
		t.Errorf("another public key, %v", err)
	}
	if _, err := PrivateKey("env:SIGN_TEST_KEY", word("wrong")); err == nil ||
		!strings.Contains(err.Error(), "cannot be decrypted with this passphrase") {
		t.Errorf("wrong passphrase: got %v", err)
	}
	none := errors.New("no passphrase")
	if _, err := PrivateKey("env:SIGN_TEST_KEY", func() ([]byte, error) { return nil, none }); !errors.Is(err, none) {
		t.Errorf("got %v", err)
	}
}

func TestKeysThatAreNotSupported(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p224, err := x509.MarshalECPrivateKey(small)
	if err != nil {
		t.Fatal(err)
	}
	publicP224, err := x509.MarshalPKIXPublicKey(&small.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	of := func(name, kind string, der []byte) string { return writePEM(t, filepath.Join(dir, name), kind, der) }
	write(t, filepath.Join(dir, "text"), "text")
	write(t, filepath.Join(dir, "old"), "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: "+
		"AES-256-CBC,00\n\nAAAA\n-----END EC PRIVATE KEY-----\n")
	privateError := func(source string) error { _, err := PrivateKey(source, nil); return err }
	publicError := func(source string) error { _, err := PublicKey(source); return err }
	for want, err := range map[string]error{
		"ed25519.PrivateKey is not supported":        privateError(of("ed", "PRIVATE KEY", private8)),
		"ed25519.PublicKey is not supported":         publicError(of("edpub", "PUBLIC KEY", spki)),
		"curve P-224 is not supported":               privateError(of("p224", "EC PRIVATE KEY", p224)),
		"curve P-224 is not supported: P-256, P-384": publicError(of("p224.pub", "PUBLIC KEY", publicP224)),
		"sec1: x509: failed to parse EC private key": privateError(of("sec1", "EC PRIVATE KEY", []byte("no key"))),
		"pkcs8: asn1:": privateError(of("pkcs8", "PRIVATE KEY", []byte("no key"))),
		"spki: asn1:":  publicError(of("spki", "PUBLIC KEY", []byte("no key"))),
		"text: not a key as PEM: PUBLIC KEY is required": publicError(filepath.Join(dir, "text")),
		"EC PRIVATE KEY is required, not CERTIFICATE":    privateError(of("cert", "CERTIFICATE", spki)),
		"PUBLIC KEY is required, not EC PRIVATE KEY":     publicError(of("private", "EC PRIVATE KEY", p224)),
		"not a key as PEM":     privateError(filepath.Join(dir, "text")),
		"openssl pkcs8 -topk8": privateError(filepath.Join(dir, "old")),
		"no such file":         publicError(filepath.Join(dir, "none")),
		"the environment variable SIGN_TEST_NONE is not set": privateError("env:SIGN_TEST_NONE"),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
