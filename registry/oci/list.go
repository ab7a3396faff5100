package oci

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// maxManifest is the maximum size of manifests in bytes, which are read into memory (OCI distribution specification:
// registries limit them to 4 MiB).
const maxManifest = 4 << 20

// list reads the manifest and those of its referrers.
func list(ctx context.Context, ref registry.Reference, o registry.Options) (*registry.Stored, error) {
	r, err := open(ref, o)
	if err != nil {
		return nil, err
	}
	d, m, err := r.read(ctx, r.name())
	if err != nil {
		return nil, r.failed(err)
	}
	files, err := modelFiles(m)
	if err != nil {
		return nil, &registry.ContentError{What: ref.String(), Err: err}
	}
	attached, err := r.attached(ctx, d, m.Annotations[annotationReport])
	if err != nil {
		return nil, r.failed(err)
	}
	return registry.NewStored(r.digested(d.Digest), append(files, attached...), r.fetch), nil
}

// read reads a manifest and verifies its digest.
func (r *repository) read(ctx context.Context, name string) (d ocispec.Descriptor, m ocispec.Manifest, err error) {
	d, rc, err := r.FetchReference(ctx, name)
	if err != nil {
		return d, m, err
	}
	defer rc.Close()
	if d.Size > maxManifest {
		return d, m, &registry.ContentError{What: r.ref.String(), Err: fmt.Errorf("a manifest of %d bytes", d.Size)}
	}
	text, err := content.ReadAll(rc, d)
	if err != nil {
		return d, m, err
	}
	if d.MediaType != ocispec.MediaTypeImageManifest {
		return d, m, &registry.ContentError{
			What: r.ref.String(),
			Err:  fmt.Errorf("%s is not the manifest of one model", d.MediaType),
		}
	}
	if err := bounded.JSON(text, &m); err != nil {
		return d, m, &registry.ContentError{What: r.ref.String(), Err: fmt.Errorf("manifest: %w", err)}
	}
	return d, m, nil
}

// modelFiles are the files of the layers. The first ONNX file is the model.
func modelFiles(m ocispec.Manifest) ([]registry.File, error) {
	var files []registry.File
	for _, l := range m.Layers {
		f, err := layerFile(l)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	model := slices.IndexFunc(files, func(f registry.File) bool { return report.Stem(f.Name) != f.Name })
	for i := range files {
		f := &files[i]
		switch m.Layers[i].MediaType {
		case mediaSettings:
			f.Role = registry.Config
		case mediaDoc:
			f.Role = docRole(f.Name)
		case mediaWeight:
			f.Role = registry.Data
		default:
			f.Role = registry.Other
		}
		if i == model {
			f.Role = registry.Model
		}
	}
	return files, nil
}

// docRole is the role of a document.
func docRole(name string) registry.Role {
	if role := registry.RoleOf(name); layerTypes[role] == mediaDoc {
		return role
	}
	return registry.Other
}

// attached are the files of the referrers of known types, ordered by role, name and digest. Other tools attach files,
// too; those without a name are theirs. Of reports it is the one that the manifest names, if it names one.
func (r *repository) attached(ctx context.Context, model ocispec.Descriptor, report string) ([]registry.File, error) {
	var files []registry.File
	// Each is a request, and the registry decides on their number. That of the pages of the list is limited by oras-go.
	read := map[digest.Digest]bool{}
	err := r.Referrers(ctx, model, "", func(list []ocispec.Descriptor) error {
		for _, d := range list {
			role, known := referrerRole(d.ArtifactType)
			if !known || d.MediaType != ocispec.MediaTypeImageManifest || read[d.Digest] {
				continue
			}
			if len(read) == maxReferrers {
				return &registry.ContentError{
					What: r.ref.String(),
					Err: fmt.Errorf("more than %d reports and signatures are attached to the model; delete those of earlier pushes",
						maxReferrers),
				}
			}
			read[d.Digest] = true
			f, ok, err := r.attachedFile(ctx, d)
			if err != nil {
				return err
			}
			if ok && (role != registry.ReportJSON || report == "" || f.SHA256 == report) {
				f.Role = role
				files = append(files, f)
			}
		}
		return nil
	})
	// Registries list referrers in any order.
	slices.SortFunc(files, func(a, b registry.File) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name), cmp.Compare(a.SHA256, b.SHA256))
	})
	files = slices.CompactFunc(files, func(a, b registry.File) bool { return a == b })
	return unique(files), err
}

// maxReferrers is the number of files that are attached to a model, and of pages that list them, at most: a push attaches
// four.
const maxReferrers = 100

// referrerRole is the role of the file of a referrer by its artifact type.
func referrerRole(artifactType string) (registry.Role, bool) {
	for role, t := range referrerTypes {
		if t == artifactType {
			return role, true
		}
	}
	return "", false
}

// attachedFile reads the manifest of a referrer. It reports false unless it has one layer with a file name.
func (r *repository) attachedFile(ctx context.Context, d ocispec.Descriptor) (registry.File, bool, error) {
	_, m, err := r.read(ctx, d.Digest.String())
	if err != nil {
		return registry.File{}, false, err
	}
	if len(m.Layers) != 1 || m.Layers[0].Annotations[annotationPath] == "" {
		return registry.File{}, false, nil
	}
	f, err := layerFile(m.Layers[0])
	return f, err == nil, err
}

// unique adds digits of the digest to names that occurred before, such as those of signatures with several keys.
func unique(files []registry.File) []registry.File {
	for i := range files {
		f := &files[i]
		same := func(g registry.File) bool { return strings.EqualFold(g.Name, f.Name) }
		if i > 0 && slices.ContainsFunc(files[:i], same) {
			ext := path.Ext(f.Name)
			f.Name = strings.TrimSuffix(f.Name, ext) + "." + f.SHA256[:12] + ext
		}
	}
	return files
}
