//go:build !unix

package atomicfile

import "os"

// limitGroup does nothing: files inherit access from their folder.
func (Access) limitGroup(*os.File) {}
