//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package atomicfile

import (
	"errors"
	"os"
)

// tryLock fails: temporary folders of killed processes stay.
func tryLock(*os.File) error { return errors.ErrUnsupported }
