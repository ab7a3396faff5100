//go:build !unix

package atomicfile

import "io/fs"

// isOwn reports true: files inherit access from their folder.
func isOwn(fs.FileInfo) bool { return true }

// shared reports nothing: files inherit access from their folder.
func shared(fs.FileInfo) string { return "" }
