package main

import (
	"fmt"
	"regexp"
)

// A version is one of semantic versioning, with a prerelease that PEP 440 has, too.
type version struct{ number, label, n string }

var versionPattern = regexp.MustCompile(`^v((?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*))(?:-(alpha|beta|rc)\.(0|[1-9]\d*))?$`)

func parseVersion(tag string) (version, error) {
	m := versionPattern.FindStringSubmatch(tag)
	if m == nil {
		return version{}, fmt.Errorf("version %q: must be vMAJOR.MINOR.PATCH, with nothing or -alpha.N, -beta.N or -rc.N after it", tag)
	}
	return version{m[1], m[2], m[3]}, nil
}

// tag returns the version as git and Go write it: v1.2.3-rc.1.
func (v version) tag() string { return "v" + v.semver() }

// semver returns the version as npm writes it: 1.2.3-rc.1.
func (v version) semver() string {
	if v.label == "" {
		return v.number
	}
	return v.number + "-" + v.label + "." + v.n
}

// pep440 returns the version as Python writes it: 1.2.3rc1.
func (v version) pep440() string {
	return v.number + map[string]string{"": "", "alpha": "a", "beta": "b", "rc": "rc"}[v.label] + v.n
}
