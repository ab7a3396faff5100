package sign

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/youmark/pkcs8"
)

// PrivateKey reads a private key from source, a file or env:NAME: an EC key as PEM, in SEC 1 (EC PRIVATE KEY) or PKCS
// #8. It calls passphrase for an encrypted one only.
func PrivateKey(source string, passphrase func() ([]byte, error)) (*ecdsa.PrivateKey, error) {
	block, err := readPEM(source, "EC PRIVATE KEY", "PRIVATE KEY", "ENCRYPTED PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	key, err := privateKey(block, passphrase)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	_, err = hashOf(&key.PublicKey)
	return key, withSource(source, err)
}

func privateKey(block *pem.Block, passphrase func() ([]byte, error)) (*ecdsa.PrivateKey, error) {
	switch {
	// Such blocks have the type of plain ones, and would be an error of the parser.
	case strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
		return nil, errors.New(
			"keys that are encrypted as SEC 1 are not supported: convert it with openssl pkcs8 -topk8",
		)
	case block.Type == "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(block.Bytes)
	case block.Type == "PRIVATE KEY":
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		return ellipticKey(key, err)
	}
	word, err := passphrase()
	if err != nil {
		return nil, err
	}
	key, _, err := pkcs8.ParsePrivateKey(block.Bytes, word)
	if err != nil {
		return nil, fmt.Errorf("the key cannot be decrypted with this passphrase: %w", err)
	}
	return ellipticKey(key, nil)
}

// ellipticKey is key as one for ECDSA.
func ellipticKey(key any, err error) (*ecdsa.PrivateKey, error) {
	if err != nil {
		return nil, err
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%T is not supported: an EC key is required", key)
	}
	return ec, nil
}

// PublicKey reads a public EC key from source, a file or env:NAME, as PEM (PUBLIC KEY).
func PublicKey(source string) (*ecdsa.PublicKey, error) {
	block, err := readPEM(source, "PUBLIC KEY")
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	ec, ok := key.(*ecdsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%s: %T is not supported: an EC key is required", source, key)
	}
	_, err = hashOf(ec)
	return ec, withSource(source, err)
}

func withSource(source string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", source, err)
}

// readPEM returns the first block of one of the types in a file or environment variable. Other blocks, such as the
// parameters that openssl ecparam writes, are skipped.
func readPEM(source string, types ...string) (*pem.Block, error) {
	text, err := readSource(source)
	if err != nil {
		return nil, err
	}
	var other string
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		for _, t := range types {
			if block.Type == t {
				return block, nil
			}
		}
		other = block.Type
	}
	if other != "" {
		return nil, fmt.Errorf("%s: %s is required, not %s", source, types[0], other)
	}
	return nil, fmt.Errorf("%s: not a key as PEM: %s is required", source, types[0])
}

// readSource returns the content of a file, or of the variable of env:NAME.
func readSource(source string) ([]byte, error) {
	name, isVariable := strings.CutPrefix(source, "env:")
	if !isVariable {
		return readFile(source, maxSize)
	}
	text := os.Getenv(name)
	if text == "" {
		return nil, fmt.Errorf("the environment variable %s is not set", name)
	}
	return []byte(text), nil
}
