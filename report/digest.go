package report

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/ir"
)

// canonical is the layout of the JSON Canonicalization Scheme: RFC 8785.
var canonical = layout{
	sorted: true,
	open:   "{", comma: ",", colon: ":", close: "}",
	openList: "[", next: ",", closeList: "]",
	member:  canonicalOptions,
	element: canonicalOptions,
}

var canonicalOptions = []jsontext.Options{
	jsontext.CanonicalizeRawInts(true), jsontext.CanonicalizeRawFloats(true), jsontext.ReorderRawObjects(true),
}

// digest is the digest of r as Digest computes it from the JSON form.
func (r *Report) digest(ctx context.Context) (string, error) {
	bare := *r
	bare.Digest = ""
	h := sha256.New()
	if err := bare.write(ir.ContextWriter(ctx, h), &canonical, nil); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Renamed is the report of the same result with another name of its only file, as a run with that output would write
// it.
func (r *Report) Renamed(ctx context.Context, name string) (*Report, error) {
	if len(r.Result.Files) != 1 {
		return nil, fmt.Errorf("report: a result of %d files has no other name", len(r.Result.Files))
	}
	renamed := *r
	renamed.Result.Files = slices.Clone(r.Result.Files)
	renamed.Result.Files[0].Name = name
	digest, err := renamed.digest(ctx)
	renamed.Digest = digest
	return &renamed, err
}

// Digest is the digest of a report in its JSON form, in hexadecimal: the SHA-256 of the canonical form (RFC 8785) of
// the document without its member "digest". It covers members that this version does not know. A document that is not
// an object, has a name twice in one object or is nested deeper than 10,000 levels is an error.
func Digest(document []byte) (string, error) { return digestWithout(document, "digest") }

// Open reads the JSON form of a report and compares it with its digest; one without a digest is not compared.
func Open(document []byte) (*Report, error) {
	r, err := Read(bytes.NewReader(document))
	if err != nil || r.Digest == "" {
		return r, err
	}
	sum, err := Digest(document)
	if err == nil && sum != r.Digest {
		err = fmt.Errorf("the report was changed after it was written: its digest is %s, not %s", sum, r.Digest)
	}
	return r, err
}

// digestWithout is the SHA-256 of the canonical form of a JSON object without one member.
func digestWithout(document []byte, member string) (string, error) {
	bare, err := withoutMember(document, member)
	if err != nil {
		return "", fmt.Errorf("report: not a valid JSON object: %w", err)
	}
	text, err := jsontext.AppendFormat(nil, bare, canonicalOptions...)
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// withoutMember is a JSON object without one member. It is read once: reports have megabytes.
func withoutMember(document []byte, member string) ([]byte, error) {
	d, err := bounded.Tokens(document)
	if err != nil {
		return nil, err
	}
	if kind := d.PeekKind(); kind != jsontext.KindBeginObject && kind != jsontext.KindInvalid {
		return nil, errors.New("it begins with another value")
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	bare, separator := append(make([]byte, 0, len(document)), '{'), ""
	for d.PeekKind() == jsontext.KindString {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		text := name.String() // before the next token
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		if text == member {
			continue
		}
		bare = append(bare, separator...)
		if bare, err = jsontext.AppendQuote(bare, text); err != nil {
			return nil, err
		}
		bare = append(append(bare, ':'), value...)
		separator = ","
	}
	if _, err := d.ReadToken(); err != nil { // the end of the object
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows it")
	}
	return append(bare, '}'), nil
}
