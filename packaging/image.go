package main

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nonroot is the user of the image: the number that distroless images use.
const nonroot = 65532

// image writes the container image, from scratch: the static programs for Linux with licences, certificates and folders to write to. The file is
// an OCI image layout in a tar archive, with one index for all architectures.
func (r *release) image(programs []*program) error {
	static := slices.DeleteFunc(slices.Clone(programs), func(p *program) bool { return !p.target.static() })
	if len(static) == 0 {
		return nil
	}
	base, err := r.layer(rootFiles())
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range static {
		image, err := r.imageOf(p, base)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.goos, Architecture: p.goarch}}})
	}
	return r.writeImage(index)
}

// imageOf returns the image of one architecture.
func (r *release) imageOf(p *program, base v1.Layer) (v1.Image, error) {
	files := []file{{name: "usr/bin", mode: fs.ModeDir | 0o755}, {name: "usr/bin/mcompress", mode: 0o755, data: p.binary}}
	for _, f := range append(slices.Clip(p.notices), file{name: "mcompress.cdx.json", data: p.sbom}) {
		f.name = "usr/share/doc/mcompress/" + f.name
		files = append(files, f)
	}
	layer, err := r.layer(files)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.AppendLayers(image, base, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.goos, p.goarch, v1.Time{Time: r.epoch}
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/mcompress"}, User: "65532:65532", WorkingDir: "/data",
		Env: []string{"PATH=/usr/bin", "HOME=/tmp"},
		Labels: map[string]string{
			"org.opencontainers.image.title": "mcompress", "org.opencontainers.image.version": r.version.semver(),
			"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.source": "https://" + module,
		},
	}
	for i := range config.History {
		config.History[i] = v1.History{Created: v1.Time{Time: r.epoch}, CreatedBy: "mcompress packaging"}
	}
	return mutate.ConfigFile(image, config)
}

// rootFiles are the files that do not depend on the architecture: the user, a folder for temporary files, one to mount models in, and the root
// certificates of Mozilla, which push and pull need.
func rootFiles() []file {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file of certificates cannot express constraints
			pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return []file{
		{name: "etc", mode: fs.ModeDir | 0o755},
		{name: "etc/passwd", data: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n")},
		{name: "etc/group", data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: "etc/ssl/certs/ca-certificates.crt", data: roots.Bytes()},
		{name: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
		{name: "data", mode: fs.ModeDir | 0o755, uid: nonroot},
	}
}

func (r *release) layer(files []file) (v1.Layer, error) {
	data, err := tarred(files, r.epoch)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
}

// writeImage writes the layout, whose files are named after their digests, in the order of their names.
func (r *release) writeImage(index v1.ImageIndex) error {
	dir, err := os.MkdirTemp("", "mcompress-release-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	images, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	if err := images.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "mcompress:" + r.version.semver()})); err != nil {
		return err
	}
	var files []file
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files = append(files, file{name: filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator))), data: data})
		return err
	})
	if err != nil {
		return err
	}
	data, err := tarred(files, r.epoch)
	if err != nil {
		return err
	}
	return r.write("mcompress_"+r.version.semver()+"_image.tar", data)
}
