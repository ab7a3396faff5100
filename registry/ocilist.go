package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/mcompress/mcompress/report"
)

// maxManifest is the maximum size of manifests in bytes, which are read into memory (OCI distribution specification:
// registries limit them to 4 MiB).
const maxManifest = 4 << 20

// listOCI reads the manifest and those of its referrers.
func listOCI(ctx context.Context, ref Reference, o Options) (*Stored, error) {
	r, err := openOCI(ref, o)
	if err != nil {
		return nil, err
	}
	d, m, err := r.read(ctx, r.name())
	if err != nil {
		return nil, r.failed(err)
	}
	s := &Stored{Digest: r.digested(d.Digest), open: r.fetch}
	if s.Files, err = modelFiles(m); err != nil {
		return nil, &ContentError{ref.String(), err}
	}
	attached, err := r.attached(ctx, d, m.Annotations[annotationReport])
	if err != nil {
		return nil, r.failed(err)
	}
	s.Files = append(s.Files, attached...)
	return s, nil
}

// read reads a manifest and verifies its digest.
func (r *repository) read(ctx context.Context, name string) (d ocispec.Descriptor, m ocispec.Manifest, err error) {
	d, rc, err := r.FetchReference(ctx, name)
	if err != nil {
		return d, m, err
	}
	defer rc.Close()
	if d.Size > maxManifest {
		return d, m, &ContentError{r.ref.String(), fmt.Errorf("a manifest of %d bytes", d.Size)}
	}
	text, err := content.ReadAll(rc, d)
	if err != nil {
		return d, m, err
	}
	if d.MediaType != ocispec.MediaTypeImageManifest {
		return d, m, &ContentError{r.ref.String(), fmt.Errorf("%s is not the manifest of one model", d.MediaType)}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return d, m, &ContentError{r.ref.String(), fmt.Errorf("manifest: %w", err)}
	}
	return d, m, nil
}

// modelFiles are the files of the layers. The first ONNX file is the model.
func modelFiles(m ocispec.Manifest) ([]File, error) {
	var files []File
	for _, l := range m.Layers {
		f, err := layerFile(l)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	model := slices.IndexFunc(files, func(f File) bool { return report.Stem(f.Name) != f.Name })
	for i := range files {
		f := &files[i]
		switch m.Layers[i].MediaType {
		case mediaSettings:
			f.Role = Config
		case mediaDoc:
			f.Role = docRole(f.Name)
		case mediaWeight:
			f.Role = Data
		default:
			f.Role = Other
		}
		if i == model {
			f.Role = Model
		}
	}
	return files, nil
}

// docRole is the role of a document.
func docRole(name string) Role {
	for _, c := range companions {
		if layerTypes[c.role] == mediaDoc && strings.HasSuffix(name, c.suffix) {
			return c.role
		}
	}
	if path.Base(name) == readme {
		return Card
	}
	return Other
}

// attached are the files of the referrers of known types, ordered by role, name and digest. Other tools attach files,
// too; those without a name are theirs. Of reports it is the one that the manifest names, if it names one.
func (r *repository) attached(ctx context.Context, model ocispec.Descriptor, report string) ([]File, error) {
	var files []File
	err := r.Referrers(ctx, model, "", func(list []ocispec.Descriptor) error {
		for _, d := range list {
			role, known := referrerRole(d.ArtifactType)
			if !known || d.MediaType != ocispec.MediaTypeImageManifest {
				continue
			}
			f, ok, err := r.attachedFile(ctx, d)
			if err != nil {
				return err
			}
			if ok && (role != ReportJSON || report == "" || f.SHA256 == report) {
				f.Role = role
				files = append(files, f)
			}
		}
		return nil
	})
	slices.SortFunc(files, func(a, b File) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name), cmp.Compare(a.SHA256, b.SHA256))
	})
	files = slices.CompactFunc(files, func(a, b File) bool { return a == b })
	return unique(files), err
}

// referrerRole is the role of the file of a referrer by its artifact type.
func referrerRole(artifactType string) (Role, bool) {
	for role, t := range referrerTypes {
		if t == artifactType {
			return role, true
		}
	}
	return "", false
}

// attachedFile reads the manifest of a referrer. It reports false unless it has one layer with a file name.
func (r *repository) attachedFile(ctx context.Context, d ocispec.Descriptor) (File, bool, error) {
	_, m, err := r.read(ctx, d.Digest.String())
	if err != nil {
		return File{}, false, err
	}
	if len(m.Layers) != 1 || m.Layers[0].Annotations[annotationPath] == "" {
		return File{}, false, nil
	}
	f, err := layerFile(m.Layers[0])
	return f, err == nil, err
}

// unique adds digits of the digest to names that occurred before, such as those of signatures with several keys.
func unique(files []File) []File {
	for i := range files {
		f := &files[i]
		if i > 0 && slices.ContainsFunc(files[:i], func(g File) bool { return strings.EqualFold(g.Name, f.Name) }) {
			ext := path.Ext(f.Name)
			f.Name = strings.TrimSuffix(f.Name, ext) + "." + f.SHA256[:12] + ext
		}
	}
	return files
}
