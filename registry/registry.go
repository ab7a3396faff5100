package registry

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/mcompress/mcompress/report"
)

// Options are the options of a transfer.
type Options struct {
	PlainHTTP bool // HTTP without TLS, for loopback addresses only
	Insecure  bool // accept any TLS certificate; the caller prints the Warning
	Overwrite bool // replace a tag, alias or file that exists with other content
	Parallel  int  // files that are transferred at a time; 0 for 4

	// MountFrom are repositories of the same OCI registry from which files that they have are mounted instead of
	// uploaded.
	MountFrom []string

	// Card is the content of the model card of a folder for the Hugging Face Hub that is not in the report.
	Card report.Card

	Progress func(done, total int64) // bytes of all files; may be nil

	Backoff time.Duration // about the wait before the second attempt of a request, which doubles; 0 for 250 ms
	Stall   time.Duration // without a byte, after which a connection is given up and the transfer resumes; 0 for 1 min
}

// Warning is what makes a connection unsafe; empty for nothing.
func (o Options) Warning(ref Reference) string {
	if !o.Insecure || ref.Host == "" {
		return ""
	}
	return fmt.Sprintf("the certificate of %s is not verified", ref.Host)
}

// A Pushed is the result of a push.
type Pushed struct {
	Reference Reference // as given
	Digest    Reference // the registry's own name of the content: with the digest, version or path
	Uploaded  int64     // bytes; less than Size if the registry has some of the files
	Size      int64     // bytes of all files
	Files     []File
}

// Check returns an error if nothing can be pushed to ref, as far as that is known before there is an artifact.
func Check(ctx context.Context, ref Reference, o Options) error {
	k, err := kindOf(ref.Scheme, ref.String())
	if err != nil {
		return err
	}
	return k.Check(ctx, ref, o)
}

// Push uploads an artifact, and repeats nothing that is there already. After an error or an interruption ref is as
// before; files that were uploaded are not uploaded again by the next push.
func Push(ctx context.Context, ref Reference, a *Artifact, o Options) (*Pushed, error) {
	if _, err := a.Model(); err != nil {
		return nil, err
	}
	k, err := kindOf(ref.Scheme, ref.String())
	if err != nil {
		return nil, err
	}
	return k.Push(ctx, ref, a, o)
}

// Move lets a tag or alias of the registry name what ref names, and returns the reference with it. Content is not
// transferred.
func Move(ctx context.Context, ref Reference, alias string, o Options) (Reference, error) {
	k, err := kindOf(ref.Scheme, ref.String())
	if err != nil {
		return Reference{}, err
	}
	if k.Move == nil {
		return Reference{}, &ReferenceError{ref.String(), fmt.Errorf("%s: has no tags or aliases", ref.Scheme)}
	}
	return k.Move(ctx, ref, alias, o)
}

// A Stored is an artifact in a registry: the list of its files, whose contents are read by Open, Read and Pull.
type Stored struct {
	Reference Reference // as given
	Digest    Reference // the registry's own name of the content: with the digest, version or path
	Files     []File    // without paths

	open OpenFunc
}

// An OpenFunc returns the content of a file from the byte start, which is at most from: a registry may not support
// parts of files.
type OpenFunc func(ctx context.Context, f File, from int64) (content io.ReadCloser, start int64, err error)

// NewStored returns an artifact for Kind.List.
func NewStored(digest Reference, files []File, open OpenFunc) *Stored {
	return &Stored{Digest: digest, Files: files, open: open}
}

// List returns the artifact of ref. It reads manifests only, so that it is fast for every size of model.
func List(ctx context.Context, ref Reference, o Options) (*Stored, error) {
	k, err := kindOf(ref.Scheme, ref.String())
	if err != nil {
		return nil, err
	}
	s, err := k.List(ctx, ref, o)
	if err == nil {
		err = checkFiles(s.Files)
	}
	if err != nil {
		return nil, err
	}
	s.Reference = ref
	return s, nil
}

// Find returns the first file of the role. It reports false if there is none.
func (s *Stored) Find(r Role) (File, bool) { return find(s.Files, r) }

// Open returns the content of a file as a stream. A content of another size or digest than f's is a *ContentError at
// its end.
func (s *Stored) Open(ctx context.Context, f File) (io.ReadCloser, error) {
	content, _, err := s.open(ctx, f, 0)
	if err != nil {
		return nil, err
	}
	return &verifiedContent{content, newVerifier(f)}, nil
}

// Read returns the content of a file of at most limit bytes, verified.
func (s *Stored) Read(ctx context.Context, f File, limit int64) (_ []byte, err error) {
	if f.Size > limit {
		return nil, &ContentError{f.Name, fmt.Errorf("%d bytes, more than %d", f.Size, limit)}
	}
	r, err := s.Open(ctx, f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
