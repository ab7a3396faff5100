//go:build amd64 && !noasm && !linux

package kernel

// permitTiles is false on systems whose permission is not known to be needed.
func permitTiles() bool { return false }
