package registry

import (
	"errors"
	"strings"
)

// A Reference names an artifact in a registry.
type Reference struct {
	Scheme string // that of the kind: oci, mlflow, hf, dir
	Host   string // host or host:port; empty for a folder
	Name   string // the repository, the registered model, or the path of the folder
	Tag    string // the tag or alias; empty if there is none
	Digest string // "sha256:" and 64 hexadecimal digits, of the manifest; empty if there is none
}

// Parse parses a reference: oci://HOST/REPOSITORY:TAG, oci://HOST/REPOSITORY@sha256:DIGEST, mlflow://HOST/NAME[@ALIAS],
// hf:DIR or dir:DIR. HOST may have a port. Errors are *ReferenceError, also for a kind of registry that the program
// does not import.
func Parse(text string) (Reference, error) {
	scheme, rest, _ := strings.Cut(text, ":")
	k, err := kindOf(scheme, text)
	if err != nil {
		return Reference{}, err
	}
	ref, err := k.Parse(rest)
	if err != nil {
		return Reference{}, &ReferenceError{text, err}
	}
	ref.Scheme = scheme
	return ref, nil
}

// IsReference reports whether text begins with the scheme of a kind of registry, so that it is not a path.
func IsReference(text string) bool {
	scheme, _, found := strings.Cut(text, ":")
	_, known := registered(scheme)
	// Also without its client: the error then names the import, and not a path that does not exist.
	return found && (known || imported[scheme] != "")
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
