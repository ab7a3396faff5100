package remote

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/mcompress/mcompress/internal/redact"
)

// A PathError is a URL that is not valid or not supported.
type PathError struct {
	Path string
	Err  error
}

// Error names the URL.
func (e *PathError) Error() string { return fmt.Sprintf("%s: %v", Shown(e.Path), e.Err) }

// Unwrap returns the cause.
func (e *PathError) Unwrap() error { return e.Err }

// The schemes of URLs. Those with a hint are not supported.
const (
	s3Scheme    = "s3"
	httpsScheme = "https"
	httpScheme  = "http"
)

func schemes() map[string]string {
	azure := "use an https:// URL with a shared access signature"
	return map[string]string{
		s3Scheme: "", httpsScheme: "", httpScheme: "",
		"gs": "use s3:// with HMAC keys and AWS_ENDPOINT_URL_S3, or a signed https:// URL",
		"az": azure, "azure": azure, "abfs": azure, "abfss": azure, "wasbs": azure,
	}
}

// Is reports whether path is a URL of object storage or of a web server, and not a path of this computer.
func Is(path string) bool {
	scheme, _, found := strings.Cut(path, "://")
	_, known := schemes()[scheme]
	return found && known
}

// address begins a URL of any scheme.
var address = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*://`)

// IsAddress reports whether path begins as a URL or reference of any scheme does: as the path of an output it would make
// folders with its parts as their names.
func IsAddress(path string) bool { return address.MatchString(path) }

// A location is a parsed URL.
type location struct {
	text        string
	bucket, key string   // of s3
	url         *url.URL // of https; nil for s3
}

// parse parses a URL of a file.
func parse(path string) (location, error) {
	loc := location{text: path}
	scheme, rest, _ := strings.Cut(path, "://")
	if hint := schemes()[scheme]; hint != "" {
		return loc, &PathError{path, fmt.Errorf("%s:// is not supported: %s", scheme, hint)}
	}
	if scheme == s3Scheme {
		loc.bucket, loc.key, _ = strings.Cut(rest, "/")
		if loc.bucket == "" || loc.key == "" {
			return loc, &PathError{path, errors.New("use s3://BUCKET/KEY")}
		}
		return loc, nil
	}
	u, err := url.Parse(path)
	switch {
	case err != nil:
		// Its error has the URL, which may have a signature.
		return loc, &PathError{path, errors.New("the URL is not valid")}
	case u.Host == "":
		return loc, &PathError{path, errors.New("use https://HOST/PATH")}
	case u.User != nil:
		return loc, &PathError{path, errors.New("a URL with a password is not supported: use a signed URL")}
	case u.Scheme == httpScheme && !isLoopback(u.Hostname()):
		return loc, &PathError{path, errors.New("http:// is for loopback addresses only: use https://")}
	}
	loc.url = u
	return loc, nil
}

// next is the location of a file next to this one. The query of a URL, such as a shared access signature, is that of
// both.
func (l location) next(name string) location {
	if l.url == nil {
		l.key = l.key[:strings.LastIndex(l.key, "/")+1] + name
		l.text = "s3://" + l.bucket + "/" + l.key
		return l
	}
	u := *l.url
	// RawPath is the encoded form of the old path, which String would prefer.
	u.Path, u.RawPath = u.Path[:strings.LastIndex(u.Path, "/")+1]+name, ""
	l.url, l.text = &u, u.String()
	return l
}

// isLoopback reports whether host is this computer: localhost, names below it, 127.0.0.0/8 and ::1.
func isLoopback(host string) bool {
	host = strings.ToLower(host)
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// Shown is a text as it is printed or stored: without the passwords and signatures of its URLs.
func Shown(text string) string { return redact.Text(text) }

// Dir is filepath.Dir for paths and URLs. That of a URL has a slash at its end.
func Dir(path string) string {
	if !Is(path) {
		return filepath.Dir(path)
	}
	path = Shown(path)
	return path[:strings.LastIndex(path, "/")+1]
}

// Base is filepath.Base for paths and URLs.
func Base(path string) string {
	if !Is(path) {
		return filepath.Base(path)
	}
	path = Shown(path)
	return path[strings.LastIndex(path, "/")+1:]
}

// Join is filepath.Join of a folder, which may be a URL, and a path of slashes in it.
func Join(folder, name string) string {
	if !Is(folder) {
		return filepath.Join(folder, filepath.FromSlash(name))
	}
	return strings.TrimSuffix(folder, "/") + "/" + name
}

// Name is the path of a URL without scheme, port and query, such as BUCKET/KEY, by which files made of it are named;
// another path is returned as it is.
func Name(path string) string {
	if !Is(path) {
		return path
	}
	_, rest, _ := strings.Cut(Shown(path), "://")
	host, rest, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, ":") // not in names of files on Windows
	return filepath.FromSlash(host + "/" + rest)
}

// NextTo is the path or URL of a file next to another one. The query of a URL is that of both.
func NextTo(path, name string) string {
	loc, err := parse(path)
	if !Is(path) || err != nil {
		return Join(Dir(path), name)
	}
	return loc.next(name).text
}
