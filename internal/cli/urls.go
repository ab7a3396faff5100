package cli

import (
	"context"

	"github.com/mcompress/mcompress/internal/fleet"
	"github.com/mcompress/mcompress/internal/redact"
	"github.com/mcompress/mcompress/internal/remote"
)

// Shown is a path, or a URL without its query, which may have a signature.
func Shown(path string) string { return remote.Shown(path) }

// IsURL reports whether a path is a URL of object storage or a web server.
func IsURL(path string) bool { return remote.Is(path) }

// IsAddress reports whether a path begins as a URL or reference of any scheme does.
func IsAddress(path string) bool { return remote.IsAddress(path) }

// HasPassword reports whether a text has a URL or reference with a user or password.
func HasPassword(text string) bool { return redact.HasPassword(text) }

// CheckOutput is an error for a URL to which no result can be written.
func CheckOutput(url string) error { return remote.CheckOutput(url) }

// BaseName is the last element of a path or of a URL without its query.
func BaseName(path string) string { return remote.Base(path) }

// ReadLog adds the JSON lines of a file, a URL or standard input to a log.
func ReadLog(ctx context.Context, path string, to *Log) error {
	return remote.ReadInput(ctx, path, fleet.MaxList, to.Read)
}

// ReadURL reads the first bytes of an object at a URL.
func ReadURL(ctx context.Context, url string, bytes int64) ([]byte, error) {
	return remote.ReadFile(ctx, url, bytes)
}
