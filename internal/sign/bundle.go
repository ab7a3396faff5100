package sign

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	_ "crypto/sha512" // SHA-384 and SHA-512
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/mcompress/mcompress/internal/bounded"
)

// The types of the formats: https://github.com/sigstore/model-transparency (predicate),
// https://github.com/in-toto/attestation/tree/main/spec/v1 (statement), https://docs.sigstore.dev/about/bundle
// (bundle).
const (
	BundleType    = "application/vnd.dev.sigstore.bundle.v0.3+json"
	StatementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://model_signing/signature/v1.0"
	payloadType   = "application/vnd.in-toto+json"
)

// A bundle holds a signed statement.
type bundle struct {
	MediaType string   `json:"mediaType"`
	Material  material `json:"verificationMaterial"`
	Envelope  envelope `json:"dsseEnvelope"`
}

type material struct {
	PublicKey   publicKey `json:"publicKey"`
	TlogEntries []any     `json:"tlogEntries"`
}

type publicKey struct {
	Hint string `json:"hint"` // SHA-256 of the public key as PEM
}

// An envelope is that of DSSE v1: https://github.com/secure-systems-lab/dsse/blob/v1.0.2/envelope.md.
type envelope struct {
	Payload     []byte      `json:"payload"`
	PayloadType string      `json:"payloadType"`
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	Sig   []byte `json:"sig"`
	KeyID string `json:"keyid"`
}

// A statement lists the files of a model.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	Serialization serialization `json:"serialization"`
	Resources     []resource    `json:"resources"` // files
}

type serialization struct {
	Method        string   `json:"method"`
	HashType      string   `json:"hash_type"`
	AllowSymlinks bool     `json:"allow_symlinks"`
	IgnorePaths   []string `json:"ignore_paths,omitempty"` // relative to the folder
}

type resource struct {
	Name      string `json:"name"` // path in the folder, with slashes
	Algorithm string `json:"algorithm"`
	Digest    string `json:"digest"` // hexadecimal
}

// root is the digest of all digests, in the order of the resources.
func root(rs []resource) (string, error) {
	h := sha256.New()
	for _, r := range rs {
		sum, err := hex.DecodeString(r.Digest)
		if err != nil {
			return "", err
		}
		h.Write(sum)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// seal signs s. Equal statements and keys give equal bundles: the signature is deterministic (RFC 6979).
func seal(s *statement, key *ecdsa.PrivateKey) ([]byte, error) {
	payload, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	hash, err := hashOf(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	// Without a source of random numbers the signature is deterministic: a second push of the same model uploads
	// nothing.
	sig, err := key.Sign(nil, payloadHash(hash, payload), hash)
	if err != nil {
		return nil, err
	}
	hint, err := Fingerprint(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	return json.Marshal(bundle{
		MediaType: BundleType,
		Material:  material{PublicKey: publicKey{hint}, TlogEntries: []any{}},
		Envelope:  envelope{Payload: payload, PayloadType: payloadType, Signatures: []signature{{Sig: sig}}},
	})
}

// Open returns the content of a bundle that was signed with the key: ErrKey if it was not.
func Open(text []byte, key *ecdsa.PublicKey) (*Signed, error) {
	var b bundle
	if err := bounded.JSON(text, &b); err != nil {
		return nil, fmt.Errorf("not a signature bundle: %w", err)
	}
	if b.Envelope.PayloadType != payloadType || len(b.Envelope.Signatures) == 0 {
		return nil, fmt.Errorf("not a signature bundle with an envelope of %s", payloadType)
	}
	hash, err := hashOf(key)
	if err != nil {
		return nil, err
	}
	hint, err := Fingerprint(key)
	if err != nil {
		return nil, err
	}
	// The hint is not signed: it only saves computing with another key. What decides is the signature below.
	if signer := b.Material.PublicKey.Hint; signer != "" && signer != hint {
		return nil, ErrKey
	}
	if !ecdsa.VerifyASN1(key, payloadHash(hash, b.Envelope.Payload), b.Envelope.Signatures[0].Sig) {
		return nil, ErrKey
	}
	return parse(b.Envelope.Payload)
}

// parse reads and checks a payload whose signature is valid.
func parse(payload []byte) (*Signed, error) {
	var s statement
	if err := bounded.JSON(payload, &s); err != nil {
		return nil, fmt.Errorf("not an in-toto statement: %w", err)
	}
	how := s.Predicate.Serialization
	switch {
	case s.Type != StatementType || s.PredicateType != predicateType:
		return nil, fmt.Errorf(
			"the statement is %q about %q: only %q about %q is supported",
			s.Type,
			s.PredicateType,
			StatementType,
			predicateType,
		)
	case how.Method != "files" || how.HashType != "sha256":
		return nil, fmt.Errorf(
			"the signature is over %s by %s: only files by sha256 are supported",
			how.Method,
			how.HashType,
		)
	case len(s.Subject) != 1:
		return nil, fmt.Errorf("the statement has %d subjects instead of 1", len(s.Subject))
	}
	names := map[string]bool{}
	signed := &Signed{Ignored: append(how.IgnorePaths, gitPaths()...), Symlinks: how.AllowSymlinks}
	for _, r := range s.Predicate.Resources {
		// A verifier could compare the first digest of a name, and another one the second.
		if names[r.Name] {
			return nil, fmt.Errorf("the statement has %q twice", r.Name)
		}
		names[r.Name] = true
		signed.Files = append(signed.Files, File{r.Name, r.Digest})
	}
	sum, err := root(s.Predicate.Resources)
	// Both are signed; model-signing verifies this digest, so that a statement which it refuses is refused here, too.
	if err != nil || s.Subject[0].Digest["sha256"] != sum {
		return nil, errors.New("the digest of the statement's subject is not that of its files")
	}
	return signed, nil
}

// payloadHash is the hash of a payload in DSSE's pre-authentication encoding.
func payloadHash(hash crypto.Hash, payload []byte) []byte {
	h := hash.New()
	// DSSE v1, protocol, section "Signature Definition": lengths are part of it, so that type and payload cannot be
	// shifted.
	fmt.Fprintf(h, "DSSEv1 %d %s %d ", len(payloadType), payloadType, len(payload))
	h.Write(payload)
	return h.Sum(nil)
}

// hashOf is the hash that Sigstore uses with the curve of a key.
func hashOf(key *ecdsa.PublicKey) (crypto.Hash, error) {
	switch key.Curve {
	case elliptic.P256():
		return crypto.SHA256, nil
	case elliptic.P384():
		return crypto.SHA384, nil
	case elliptic.P521():
		return crypto.SHA512, nil
	}
	return 0, fmt.Errorf("curve %s is not supported: P-256, P-384 and P-521 are", key.Curve.Params().Name)
}

// Fingerprint identifies a key in a bundle: the SHA-256 of its PEM form.
func Fingerprint(key *ecdsa.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	return hex.EncodeToString(sum[:]), nil
}
