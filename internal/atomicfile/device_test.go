//go:build unix && !linux

package atomicfile

import "errors"

func makeDevice(string) error { return errors.ErrUnsupported }
