package registry

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/mcompress/mcompress/report"
)

// Options are the options of a transfer.
type Options struct {
	PlainHTTP bool // HTTP without TLS, for loopback addresses only
	Insecure  bool // accept any TLS certificate; the caller warns
	Overwrite bool // replace a tag, alias or file that exists with other content
	Parallel  int  // files that are transferred at a time; 0 for 4

	// MountFrom are repositories of the same OCI registry from which files that they have are mounted instead of
	// uploaded.
	MountFrom []string

	// Card is the content of the model card of a folder for the Hugging Face Hub that is not in the report.
	Card report.Card

	Progress func(done, total int64) // bytes of all files; may be nil

	backoff time.Duration // before the second attempt; 0 for that of package retry
	stall   time.Duration // 0 for stallTime
}

// parallel is the default number of files that are transferred at a time.
const parallel = 4

// A Pushed is the result of a push.
type Pushed struct {
	Reference Reference // as given
	Digest    Reference // the registry's own name of the content: with the digest, version or path
	Uploaded  int64     // bytes; less than Size if the registry has some of the files
	Size      int64     // bytes of all files
	Files     []File
}

// A backend is a kind of registry. Its methods are called with references of its scheme.
type backend struct {
	parse func(rest string) (Reference, error) // the text after SCHEME:

	// check returns an error if ref cannot be pushed to, as far as that is known without the files: host, credentials,
	// permission.
	check func(ctx context.Context, ref Reference, o Options) error

	// push uploads the files that the registry does not have. What makes them visible as ref, such as the tag, is last,
	// so that a push can be repeated after an interruption. *ConflictError unless o.Overwrite if ref exists with other
	// content.
	push func(ctx context.Context, ref Reference, a *Artifact, o Options) (*Pushed, error)

	// list returns the files of ref without reading them.
	list func(ctx context.Context, ref Reference, o Options) (*Stored, error)

	// move lets a tag or alias name what ref names now, and returns its reference. Nil if the backend has none.
	move func(ctx context.Context, ref Reference, alias string, o Options) (Reference, error)
}

// The schemes of references.
const (
	schemeOCI    = "oci"
	schemeMLflow = "mlflow"
	schemeHub    = "hf"
	schemeDir    = "dir"
)

// backends are the kinds of registries by scheme.
var backends = map[string]backend{
	schemeOCI:    {parse: parseOCI, check: checkOCI, push: pushOCI, list: listOCI, move: moveOCI},
	schemeMLflow: {parse: parseMLflow, check: checkMLflow, push: pushMLflow, list: listMLflow, move: moveMLflow},
	schemeHub:    {parse: parseFolder, check: checkDir, push: pushHub, list: listHub},
	schemeDir:    {parse: parseFolder, check: checkDir, push: pushDir, list: listDir},
}

// Check returns an error if nothing can be pushed to ref, as far as that is known before there is an artifact.
func Check(ctx context.Context, ref Reference, o Options) error {
	return backends[ref.Scheme].check(ctx, ref, o)
}

// Push uploads an artifact, and repeats nothing that is there already. After an error or an interruption ref is as
// before; files that were uploaded are not uploaded again by the next push.
func Push(ctx context.Context, ref Reference, a *Artifact, o Options) (*Pushed, error) {
	if _, err := a.Model(); err != nil {
		return nil, err
	}
	o.Parallel = cmp.Or(o.Parallel, parallel)
	return backends[ref.Scheme].push(ctx, ref, a, o)
}

// Move lets a tag or alias of the registry name what ref names, and returns the reference with it. Content is not
// transferred.
func Move(ctx context.Context, ref Reference, alias string, o Options) (Reference, error) {
	b := backends[ref.Scheme]
	if b.move == nil {
		return Reference{}, &ReferenceError{ref.String(), fmt.Errorf("%s: has no tags or aliases", ref.Scheme)}
	}
	return b.move(ctx, ref, alias, o)
}

// A Stored is an artifact in a registry: the list of its files, whose contents are read by Open, Read and Pull.
type Stored struct {
	Reference Reference // as given
	Digest    Reference // the registry's own name of the content: with the digest, version or path
	Files     []File    // without paths

	// open returns the content of a file from the byte start, which is at most from: a registry may not support parts
	// of files.
	open func(ctx context.Context, f File, from int64) (content io.ReadCloser, start int64, err error)
}

// List returns the artifact of ref. It reads manifests only, so that it is fast for every size of model.
func List(ctx context.Context, ref Reference, o Options) (*Stored, error) {
	s, err := backends[ref.Scheme].list(ctx, ref, o)
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
