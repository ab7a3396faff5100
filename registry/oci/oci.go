package oci

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
	orasregistry "oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/mcompress/mcompress/internal/retry"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/registry/internal/transfer"
)

func init() {
	registry.Register(scheme, registry.Kind{Parse: parse, Check: check, Push: push, List: list, Move: move})
}

// scheme is that of references.
const scheme = "oci"

// parse parses //HOST/REPOSITORY:TAG and //HOST/REPOSITORY@DIGEST.
func parse(rest string) (registry.Reference, error) {
	rest, found := strings.CutPrefix(rest, "//")
	r, err := orasregistry.ParseReference(rest)
	switch {
	case !found || err != nil:
		return registry.Reference{}, errors.New(
			"use oci://HOST/REPOSITORY:TAG or oci://HOST/REPOSITORY@sha256:DIGEST; a repository is in lower case",
		)
	case r.Reference == "":
		return registry.Reference{}, errors.New("the tag is missing: use oci://HOST/REPOSITORY:TAG")
	}
	ref := registry.Reference{Host: r.Registry, Name: r.Repository}
	if d, err := r.Digest(); err != nil {
		ref.Tag = r.Reference
	} else if d.Algorithm() != "sha256" {
		return registry.Reference{}, fmt.Errorf("digest algorithm %s is not supported: use sha256", d.Algorithm())
	} else {
		ref.Digest = d.String()
	}
	return ref, nil
}

// maxMetadata is the maximum size in bytes of lists that the client of the registry decodes: a list of empty manifests
// takes a hundred times as much memory.
const maxMetadata = 1 << 20

// A repository is one repository of an OCI registry (OCI distribution specification, version 1.1). Manifests and tokens
// are those of oras-go; blobs are transferred by blob.go.
type repository struct {
	*remote.Repository
	auth     *auth.Client
	ref      registry.Reference
	o        registry.Options
	protocol string // http or https
}

func open(ref registry.Reference, o registry.Options) (*repository, error) {
	protocol, err := transfer.Scheme(ref.Host, o.PlainHTTP)
	if err != nil {
		return nil, &registry.ReferenceError{Reference: ref.String(), Err: err}
	}
	store, err := dockerCredentials()
	if err != nil {
		return nil, fmt.Errorf("credentials of Docker: %w", err)
	}
	repo := &remote.Repository{
		Reference: orasregistry.Reference{Registry: ref.Host, Repository: ref.Name}, PlainHTTP: protocol == "http",
		SkipReferrersGC:      true, // registries refuse to delete by default
		ReferrerListMaxPages: maxReferrers,
		MaxMetadataBytes:     maxMetadata,
	}
	client := &auth.Client{
		Client:     transfer.Client(o.Insecure, o.Backoff, o.Stall),
		Cache:      auth.NewCache(),
		Credential: credentials.Credential(store),
	}
	client.SetUserAgent("mcompress")
	repo.Client = client
	return &repository{repo, client, ref, o, protocol}, nil
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
func (r *repository) digested(d digest.Digest) registry.Reference {
	return registry.Reference{Scheme: scheme, Host: r.ref.Host, Name: r.ref.Name, Digest: d.String()}
}

// failed returns err of a request in words for users.
func (r *repository) failed(err error) error {
	var response *errcode.ErrorResponse
	var content *registry.ContentError
	var reported *registry.TransferError
	var conflict *registry.ConflictError
	switch {
	case err == nil || errors.Is(err, context.Canceled) || errors.As(err, &content) || errors.As(err, &reported),
		errors.As(err, &conflict):
		return err
	case errors.Is(err, errdef.ErrNotFound):
		return r.refused(registry.ErrNotFound)
	case isMismatch(err):
		return &registry.ContentError{What: r.ref.String(), Err: err}
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return r.refused(fmt.Errorf("%s requires credentials: docker login %[1]s", r.ref.Host))
	case errors.As(err, &response):
		// A step that is repeated waits as long as the response requests.
		status := retry.Delay(r.status(response), retry.Requested(err))
		return &registry.TransferError{Reference: r.ref, Err: status, Refused: !retry.Status(response.StatusCode)}
	}
	cause, transient := transfer.Unreached(r.ref.Host, err)
	return &registry.TransferError{Reference: r.ref, Err: cause, Refused: !transient}
}

// isMismatch reports whether content differs from its descriptor or the response's header.
func isMismatch(err error) bool {
	return errors.Is(err, content.ErrTrailingData) || errors.Is(err, content.ErrInvalidDescriptorSize) ||
		errors.Is(err, errdef.ErrInvalidDigest) ||
		// For that oras-go has no type.
		errors.Is(err, errdef.ErrSizeExceedsLimit) ||
		strings.Contains(err.Error(), "mismatch")
}

func (r *repository) refused(err error) error {
	return &registry.TransferError{Reference: r.ref, Err: err, Refused: true}
}

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

// check starts an upload and cancels it: only that shows whether the registry accepts one.
func check(ctx context.Context, ref registry.Reference, o registry.Options) error {
	if ref.Tag == "" {
		return &registry.ReferenceError{Reference: ref.String(), Err: errors.New("a push requires a tag")}
	}
	r, err := open(ref, o)
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

// move tags the manifest of ref.
func move(ctx context.Context, ref registry.Reference, tag string, o registry.Options) (registry.Reference, error) {
	r, err := open(ref, o)
	if err != nil {
		return registry.Reference{}, err
	}
	moved := registry.Reference{Scheme: scheme, Host: ref.Host, Name: ref.Name, Tag: tag}
	if err := (orasregistry.Reference{Reference: tag}).ValidateReferenceAsTag(); err != nil {
		return registry.Reference{}, &registry.ReferenceError{Reference: moved.String(), Err: errors.New("not a tag")}
	}
	d, err := r.Resolve(ctx, r.name())
	if err != nil {
		return registry.Reference{}, r.failed(err)
	}
	return moved, r.failed(r.Tag(ctx, d, tag))
}

// push uploads blobs, then the manifest without a tag, then its referrers, then the tag.
func push(
	ctx context.Context, ref registry.Reference, a *registry.Artifact, o registry.Options,
) (*registry.Pushed, error) {
	if ref.Tag == "" {
		return nil, &registry.ReferenceError{Reference: ref.String(), Err: errors.New("a push requires a tag")}
	}
	r, err := open(ref, o)
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
	return &registry.Pushed{
		Reference: ref, Digest: r.digested(p.manifest.Digest), Uploaded: p.uploaded, Size: p.size(), Files: p.files(),
	}, nil
}

// A pusher is a push to an OCI registry.
type pusher struct {
	*repository
	artifact *registry.Artifact
	packed

	meter    *transfer.Meter
	mu       sync.Mutex
	uploaded int64
}

func (p *pusher) run(ctx context.Context) error {
	tagged, err := p.tagged(ctx)
	if err != nil {
		return err
	}
	p.meter = transfer.NewMeter(p.size(), p.o.Progress)
	if err := transfer.Each(ctx, p.o.Parallel, p.files(), p.file); err != nil {
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
		return false, &registry.ConflictError{What: p.ref.String(), There: d.Digest.String()}
	}
	return d.Digest == p.manifest.Digest, nil
}

// file uploads a file unless the repository has it.
func (p *pusher) file(ctx context.Context, f registry.File) error {
	exists, err := p.Blobs().Exists(ctx, blob(f))
	if err != nil {
		return p.failed(err)
	}
	if exists {
		p.meter.Add(f.Size)
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
