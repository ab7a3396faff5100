//go:build !linux && !darwin

package filestate

import (
	"io/fs"
	"time"
)

// Of is not known.
func Of(fs.FileInfo) (id string, changed time.Time, ok bool) { return "", changed, false }
