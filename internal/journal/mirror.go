package journal

import (
	"context"
	"io"
)

// A Mirror exchanges the files in the folder of a group with those that its other processes have on other machines.
// Names are paths of slashes in the folder.
type Mirror interface {
	// Pull appends to a log what has been pushed since. If there is any, it replaces what was not pushed here.
	Pull(ctx context.Context, log string) error
	// Push sends the first bytes of the log of this process. It is an error if another process has pushed others since.
	Push(ctx context.Context, log string, content io.ReaderAt, end int64) error
	// Store sends a file that is complete.
	Store(ctx context.Context, file string) error
	// Fetch receives a file, if its process has stored it.
	Fetch(ctx context.Context, file string) error
	// Remove removes what all processes have sent.
	Remove(ctx context.Context) error
}

// sharedFolder is the mirror of a folder that all processes have.
type sharedFolder struct{}

func (sharedFolder) Pull(context.Context, string) error                     { return nil }
func (sharedFolder) Push(context.Context, string, io.ReaderAt, int64) error { return nil }
func (sharedFolder) Store(context.Context, string) error                    { return nil }
func (sharedFolder) Fetch(context.Context, string) error                    { return nil }
func (sharedFolder) Remove(context.Context) error                           { return nil }

// orSharedFolder is m, or the mirror of a shared folder if it is nil.
func orSharedFolder(m Mirror) Mirror {
	if m == nil {
		return sharedFolder{}
	}
	return m
}
