// Package redact leaves secrets out of texts that are printed or stored: passwords and signatures in URLs and references. It
// must not depend on other packages of this module.
package redact

import (
	"regexp"
	"strings"
)

// query matches the query and fragment of a URL in a text, which have signatures.
var query = regexp.MustCompile(`(https?://[^\s?#"']*)[?#][^\s"']*`)

// address matches a URL or reference in a text.
var address = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>]*@`)

// host matches what is between :// and the first slash, if it has no user: a name or an address of IPv6 in brackets, and
// a port.
var host = regexp.MustCompile(`^(\[[^]@]*\]|[^][@:]*)(:[0-9]*)?$`)

// Text is a text without the passwords, queries and fragments of its URLs and references. A path is returned as it is.
func Text(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return query.ReplaceAllString(withoutUsers(text), "$1")
}

// HasPassword reports whether a URL or reference in a text has a user or password.
func HasPassword(text string) bool { return withoutUsers(text) != text }

func withoutUsers(text string) string {
	return address.ReplaceAllStringFunc(text, func(s string) string {
		start := strings.Index(s, "://") + len("://")
		// In host:5000/repository@sha256:… and in host/name@alias there is no user.
		if authority, _, _ := strings.Cut(s[start:], "/"); host.MatchString(authority) {
			return s
		}
		// The password may have the characters / and @, too.
		return s[:start] + "…@"
	})
}
