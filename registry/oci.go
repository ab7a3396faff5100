package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/mcompress/mcompress/internal/retry"
)

// A repository is one repository of an OCI registry (OCI distribution specification, version 1.1). Manifests and tokens
// are those of oras-go; blobs are transferred by blob.go.
type repository struct {
	*remote.Repository
	auth   *auth.Client
	ref    Reference
	o      Options
	scheme string
}

func openOCI(ref Reference, o Options) (*repository, error) {
	scheme, err := o.scheme(ref)
	if err != nil {
		return nil, err
	}
	store, err := dockerCredentials()
	if err != nil {
		return nil, fmt.Errorf("credentials of Docker: %w", err)
	}
	repo := &remote.Repository{
		Reference: registry.Reference{Registry: ref.Host, Repository: ref.Name}, PlainHTTP: scheme == "http",
		SkipReferrersGC:      true, // registries refuse to delete by default
		ReferrerListMaxPages: 100,
	}
	client := &auth.Client{Client: o.client(), Cache: auth.NewCache(), Credential: credentials.Credential(store)}
	client.SetUserAgent("mcompress")
	repo.Client = client
	return &repository{repo, client, ref, o, scheme}, nil
}

// dockerCredentials are those of the Docker configuration; none without a home folder, as in containers.
func dockerCredentials() (credentials.Store, error) {
	if _, err := os.UserHomeDir(); err != nil && os.Getenv("DOCKER_CONFIG") == "" {
		return credentials.NewMemoryStore(), nil
	}
	return credentials.NewStoreFromDocker(credentials.StoreOptions{})
}

// name is the tag or the digest.
func (r *repository) name() string { return cmp.Or(r.ref.Digest, r.ref.Tag) }

// digested is the reference with a digest in place of the tag.
func (r *repository) digested(d digest.Digest) Reference {
	return Reference{Scheme: schemeOCI, Host: r.ref.Host, Name: r.ref.Name, Digest: d.String()}
}

// failed returns err of a request in words for users.
func (r *repository) failed(err error) error {
	var response *errcode.ErrorResponse
	var content *ContentError
	var transfer *TransferError
	var conflict *ConflictError
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.As(err, &content) || errors.As(err, &transfer),
		errors.As(err, &conflict):
		return err
	case errors.Is(err, errdef.ErrNotFound):
		return r.refused(ErrNotFound)
	case isMismatch(err):
		return &ContentError{r.ref.String(), err}
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return r.refused(fmt.Errorf("%s requires credentials: docker login %[1]s", r.ref.Host))
	case errors.As(err, &response):
		// A step that is repeated waits as long as the response requests.
		status := retry.Delay(r.status(response), retry.Requested(err))
		return &TransferError{r.ref, status, !retry.Status(response.StatusCode)}
	}
	return unreached(r.ref, err)
}

// isMismatch reports whether content differs from its descriptor or the response's header.
func isMismatch(err error) bool {
	return errors.Is(err, content.ErrTrailingData) || errors.Is(err, content.ErrInvalidDescriptorSize) || errors.Is(err, errdef.ErrInvalidDigest) ||
		// For that oras-go has no type.
		errors.Is(err, errdef.ErrSizeExceedsLimit) ||
		strings.Contains(err.Error(), "mismatch")
}

func (r *repository) refused(err error) error { return &TransferError{r.ref, err, true} }

// status describes a response by its status code and the first error in it.
func (r *repository) status(resp *errcode.ErrorResponse) error {
	detail := ""
	if len(resp.Errors) > 0 {
		detail = ": " + cmp.Or(resp.Errors[0].Message, resp.Errors[0].Code)
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return fmt.Errorf("%s refuses the credentials, or requires some: docker login %[1]s", r.ref.Host)
	case http.StatusForbidden:
		return fmt.Errorf("%s denies access%s", r.ref.Host, detail)
	case http.StatusMethodNotAllowed:
		return fmt.Errorf("the registry is read-only%s", detail)
	}
	return fmt.Errorf("the registry responds with status %d%s", resp.StatusCode, detail)
}

// checkOCI starts an upload and cancels it: only that shows whether the registry accepts one.
func checkOCI(ctx context.Context, ref Reference, o Options) error {
	if ref.Tag == "" {
		return &ReferenceError{ref.String(), errors.New("a push requires a tag")}
	}
	r, err := openOCI(ref, o)
	if err != nil {
		return err
	}
	at, err := r.begin(ctx, nil)
	if err != nil {
		return r.failed(err)
	}
	r.cancel(ctx, at)
	return nil
}

// moveOCI tags the manifest of ref.
func moveOCI(ctx context.Context, ref Reference, tag string, o Options) (Reference, error) {
	r, err := openOCI(ref, o)
	if err != nil {
		return Reference{}, err
	}
	moved := Reference{Scheme: schemeOCI, Host: ref.Host, Name: ref.Name, Tag: tag}
	if err := (registry.Reference{Registry: ref.Host, Repository: ref.Name, Reference: tag}).ValidateReferenceAsTag(); err != nil {
		return Reference{}, &ReferenceError{moved.String(), errors.New("not a tag")}
	}
	d, err := r.Resolve(ctx, r.name())
	if err != nil {
		return Reference{}, r.failed(err)
	}
	return moved, r.failed(r.Tag(ctx, d, tag))
}

// pushOCI uploads blobs, then the manifest without a tag, then its referrers, then the tag.
func pushOCI(ctx context.Context, ref Reference, a *Artifact, o Options) (*Pushed, error) {
	if ref.Tag == "" {
		return nil, &ReferenceError{ref.String(), errors.New("a push requires a tag")}
	}
	r, err := openOCI(ref, o)
	if err != nil {
		return nil, err
	}
	p := &pusher{repository: r, artifact: a}
	if p.packed, err = pack(a); err != nil {
		return nil, err
	}
	if err := p.run(ctx); err != nil {
		return nil, r.failed(err)
	}
	return &Pushed{ref, r.digested(p.manifest.Digest), p.uploaded, size(p.files()), p.files()}, nil
}

// A pusher is a push to an OCI registry.
type pusher struct {
	*repository
	artifact *Artifact
	packed

	meter    *meter
	mu       sync.Mutex
	uploaded int64
}

func (p *pusher) run(ctx context.Context) error {
	tagged, err := p.tagged(ctx)
	if err != nil {
		return err
	}
	p.meter = newMeter(size(p.files()), p.o.Progress)
	if err := each(ctx, p.o, p.files(), p.file); err != nil {
		return err
	}
	for _, b := range p.configs() {
		if err := p.small(ctx, b); err != nil {
			return err
		}
	}
	// By digest and without a tag: until all referrers are there too, nobody finds it.
	if err := p.put(ctx, p.manifest); err != nil {
		return err
	}
	if err := p.refer(ctx); err != nil {
		return err
	}
	// It names this manifest already: nothing is left to do for a push that is repeated.
	if tagged {
		return nil
	}
	return p.Tag(ctx, p.manifest.Descriptor, p.ref.Tag)
}

// tagged reports whether the tag names the manifest already. Another one is an error unless it is to be replaced.
func (p *pusher) tagged(ctx context.Context) (bool, error) {
	d, err := p.Resolve(ctx, p.ref.Tag)
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case d.Digest != p.manifest.Digest && !p.o.Overwrite:
		return false, &ConflictError{p.ref.String(), d.Digest.String()}
	}
	return d.Digest == p.manifest.Digest, nil
}

// file uploads a file unless the repository has it.
func (p *pusher) file(ctx context.Context, f File) error {
	exists, err := p.Blobs().Exists(ctx, f.blob())
	if err != nil {
		return p.failed(err)
	}
	if exists {
		p.meter.add(f.Size)
		return nil
	}
	n, err := p.upload(ctx, f, p.meter)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uploaded += n
	return err
}

// small uploads a blob in memory unless the repository has it.
func (p *pusher) small(ctx context.Context, b bytesBlob) error {
	exists, err := p.Blobs().Exists(ctx, b.Descriptor)
	if err != nil || exists {
		return err
	}
	return p.Blobs().Push(ctx, b.Descriptor, b.reader())
}

// put uploads a manifest unless the repository has it.
func (p *pusher) put(ctx context.Context, b bytesBlob) error {
	exists, err := p.Manifests().Exists(ctx, b.Descriptor)
	if err != nil || exists {
		return err
	}
	return p.Manifests().Push(ctx, b.Descriptor, b.reader())
}

// refer uploads the manifests of the referrers that the registry does not list yet. A registry without the referrers
// API, which a push that was interrupted may have left with a manifest that is not listed, lists those under the
// fallback tag.
func (p *pusher) refer(ctx context.Context) error {
	if len(p.referrers) == 0 {
		return nil
	}
	listed := map[digest.Digest]bool{}
	err := p.Referrers(ctx, p.manifest.Descriptor, "", func(list []ocispec.Descriptor) error {
		for _, d := range list {
			listed[d.Digest] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, b := range p.referrers {
		if listed[b.Digest] {
			continue
		}
		if err := p.Manifests().Push(ctx, b.Descriptor, b.reader()); err != nil {
			return err
		}
	}
	return nil
}
