package atomicfile

import (
	"errors"
	"io"
)

// Write writes one file atomically.
func Write(path string, a Access, write func(io.Writer) error) (err error) {
	s := &Set{Access: a, Sync: true}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.WriteFile(path, write); err != nil {
		return err
	}
	return s.Publish(path)
}
