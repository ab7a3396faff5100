package registry

import (
	"errors"
	"fmt"
	"strings"

	"oras.land/oras-go/v2/registry"
)

// A Reference names an artifact in a registry.
type Reference struct {
	Scheme string // that of a backend: oci, mlflow, hf, dir
	Host   string // host or host:port; empty for a folder
	Name   string // the repository, the registered model, or the path of the folder
	Tag    string // the tag or alias; empty if there is none
	Digest string // "sha256:" and 64 hexadecimal digits, of the manifest; empty if there is none
}

// Parse parses a reference: oci://HOST/REPOSITORY:TAG, oci://HOST/REPOSITORY@sha256:DIGEST, mlflow://HOST/NAME[@ALIAS],
// hf:DIR or dir:DIR. HOST may have a port. Errors are *ReferenceError.
func Parse(text string) (Reference, error) {
	scheme, rest, _ := strings.Cut(text, ":")
	b, known := backends[scheme]
	if !known {
		return Reference{}, &ReferenceError{
			text,
			errors.New("use oci://HOST/REPOSITORY:TAG, mlflow://HOST/NAME, hf:DIR or dir:DIR"),
		}
	}
	ref, err := b.parse(rest)
	if err != nil {
		return Reference{}, &ReferenceError{text, err}
	}
	ref.Scheme = scheme
	return ref, nil
}

// IsReference reports whether text begins with the scheme of a backend, so that it is not a path.
func IsReference(text string) bool {
	scheme, _, found := strings.Cut(text, ":")
	_, known := backends[scheme]
	return found && known
}

// String returns the text that Parse accepts.
func (r Reference) String() string {
	switch {
	case r.Host == "":
		return r.Scheme + ":" + r.Name
	case r.Digest != "":
		return r.Scheme + "://" + r.Host + "/" + r.Name + "@" + r.Digest
	case r.Tag == "":
		return r.Scheme + "://" + r.Host + "/" + r.Name
	case r.Scheme == schemeOCI:
		return r.Scheme + "://" + r.Host + "/" + r.Name + ":" + r.Tag
	}
	return r.Scheme + "://" + r.Host + "/" + r.Name + "@" + r.Tag
}

// parseFolder parses a path of a folder.
func parseFolder(rest string) (Reference, error) {
	if rest == "" {
		return Reference{}, errors.New("the path of a folder is missing")
	}
	return Reference{Name: rest}, nil
}

// parseOCI parses //HOST/REPOSITORY:TAG and //HOST/REPOSITORY@DIGEST.
func parseOCI(rest string) (Reference, error) {
	rest, found := strings.CutPrefix(rest, "//")
	r, err := registry.ParseReference(rest)
	switch {
	case !found || err != nil:
		return Reference{}, errors.New(
			"use oci://HOST/REPOSITORY:TAG or oci://HOST/REPOSITORY@sha256:DIGEST; a repository is in lower case",
		)
	case r.Reference == "":
		return Reference{}, errors.New("the tag is missing: use oci://HOST/REPOSITORY:TAG")
	}
	ref := Reference{Host: r.Registry, Name: r.Repository}
	if d, err := r.Digest(); err != nil {
		ref.Tag = r.Reference
	} else if d.Algorithm() != "sha256" {
		return Reference{}, fmt.Errorf("digest algorithm %s is not supported: use sha256", d.Algorithm())
	} else {
		ref.Digest = d.String()
	}
	return ref, nil
}
