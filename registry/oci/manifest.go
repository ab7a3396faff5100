package oci

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// Media types and annotations of the CNCF ModelPack specification, version 0.0.7.
const (
	mediaManifest = "application/vnd.cncf.model.manifest.v1+json"
	mediaConfig   = "application/vnd.cncf.model.config.v1+json"
	mediaWeight   = "application/vnd.cncf.model.weight.v1.raw"
	mediaSettings = "application/vnd.cncf.model.weight.config.v1.raw"
	mediaDoc      = "application/vnd.cncf.model.doc.v1.raw"

	annotationPath = "org.cncf.model.filepath"
)

// annotationReport has the SHA-256 of the report on the manifest of a model: it is part of the model's digest.
const annotationReport = "dev.mcompress.report.sha256"

// Media types of referrers. Each is that of the config as well as the artifact type, because some registries drop the
// latter.
const (
	mediaReport    = "application/vnd.mcompress.report.v1+json"
	mediaBOM       = "application/vnd.cyclonedx+json"
	mediaStatement = "application/vnd.in-toto+json"
	mediaSignature = "application/vnd.dev.sigstore.bundle.v0.3+json"
)

// layerTypes are the media types of files that are layers of the model's manifest.
var layerTypes = map[registry.Role]string{
	registry.Model: mediaWeight, registry.Data: mediaWeight, registry.Config: mediaSettings,
	registry.ReportText: mediaDoc, registry.Card: mediaDoc,
}

// referrerTypes are the media types of files that refer to the model's manifest. The page is not pushed: it has a time,
// and the report its facts.
var referrerTypes = map[registry.Role]string{
	registry.ReportJSON: mediaReport, registry.BOM: mediaBOM, registry.Provenance: mediaStatement,
	registry.Signature: mediaSignature,
}

// A bytesBlob is a blob in memory.
type bytesBlob struct {
	ocispec.Descriptor
	content []byte
}

func (b bytesBlob) reader() io.Reader { return bytes.NewReader(b.content) }

// jsonBlob encodes a value. Equal values give equal bytes.
func jsonBlob(mediaType string, value any) (bytesBlob, error) {
	text, err := json.Marshal(value)
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}
	return bytesBlob{d, text}, err
}

// A packed is the manifests of an artifact, without a time, so that equal files give equal digests.
type packed struct {
	layers, attached []registry.File
	manifest, config bytesBlob
	referrers        []bytesBlob // manifests
	empty            []bytesBlob // their configs
}

// files are the files that are uploaded.
func (p *packed) files() []registry.File {
	return append(p.layers[:len(p.layers):len(p.layers)], p.attached...)
}

func (p *packed) size() int64 { return (&registry.Artifact{Files: p.files()}).Size() }

func (p *packed) configs() []bytesBlob { return append(p.empty[:len(p.empty):len(p.empty)], p.config) }

func pack(a *registry.Artifact) (p packed, err error) {
	for _, f := range a.Files {
		switch {
		case layerTypes[f.Role] != "":
			p.layers = append(p.layers, f)
		case referrerTypes[f.Role] != "":
			p.attached = append(p.attached, f)
		}
	}
	if err := p.packModel(a); err != nil {
		return p, err
	}
	for _, f := range p.attached {
		if err := p.packReferrer(f); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *packed) packModel(a *registry.Artifact) (err error) {
	model, err := a.Model()
	if err != nil {
		return err
	}
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: mediaManifest,
	}
	var c modelConfig
	c.Descriptor.Name = report.Stem(model.Name)
	c.ModelFS.Type = "layers"
	c.Config.Format = "onnx"
	if err := c.describe(a); err != nil {
		return err
	}
	for _, f := range p.layers {
		d := descriptor(f, layerTypes[f.Role])
		m.Layers = append(m.Layers, d)
		c.ModelFS.DiffIDs = append(c.ModelFS.DiffIDs, d.Digest)
	}
	if p.config, err = jsonBlob(mediaConfig, c); err != nil {
		return err
	}
	m.Config = p.config.Descriptor
	if report, ok := a.Find(registry.ReportJSON); ok {
		m.Annotations = map[string]string{annotationReport: report.SHA256}
	}
	p.manifest, err = jsonBlob(m.MediaType, m)
	return err
}

func (p *packed) packReferrer(f registry.File) error {
	config, err := jsonBlob(referrerTypes[f.Role], struct{}{})
	if err != nil {
		return err
	}
	m, err := jsonBlob(ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: config.MediaType, Config: config.Descriptor,
		Layers: []ocispec.Descriptor{descriptor(f, config.MediaType)}, Subject: &p.manifest.Descriptor,
	})
	p.referrers, p.empty = append(p.referrers, m), append(p.empty, config)
	return err
}

// blob describes the content of a file.
func blob(f registry.File) ocispec.Descriptor {
	return ocispec.Descriptor{Digest: digest.NewDigestFromEncoded(digest.SHA256, f.SHA256), Size: f.Size}
}

// descriptor describes a file. ORAS reads the name of a file from its title.
func descriptor(f registry.File, mediaType string) ocispec.Descriptor {
	d := blob(f)
	d.MediaType, d.Annotations = mediaType, map[string]string{annotationPath: f.Name, ocispec.AnnotationTitle: f.Name}
	return d
}

// layerFile is the file that a layer of a pulled manifest describes, without its role.
func layerFile(d ocispec.Descriptor) (registry.File, error) {
	name := d.Annotations[annotationPath]
	if name == "" {
		name = d.Annotations[ocispec.AnnotationTitle]
	}
	switch {
	case d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256:
		return registry.File{}, fmt.Errorf("layer %q: %q is not a SHA-256 digest", name, d.Digest)
	case d.Size < 0:
		return registry.File{}, fmt.Errorf("layer %q: size %d", name, d.Size)
	case name == "":
		return registry.File{}, fmt.Errorf("layer %.19s has no file name (annotation %s)", d.Digest, annotationPath)
	case strings.Contains(d.MediaType, ".tar") || strings.HasSuffix(d.MediaType, "+gzip") ||
		strings.HasSuffix(d.MediaType, "+zstd"):
		return registry.File{}, fmt.Errorf("layer %q: archives and compressed layers (%s) are not supported",
			name, d.MediaType)
	}
	return registry.File{Name: name, Size: d.Size, SHA256: d.Digest.Encoded()}, nil
}
