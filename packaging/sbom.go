package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bom returns the SBOM of a program (CycloneDX 1.6): the modules in it, with licences and package URLs. The serial number follows from the
// binary, so that the same binary has the same SBOM.
func (r *release) bom(p *program) ([]byte, error) {
	sum := sha256.Sum256(p.binary)
	main := cdx.Component{
		BOMRef: "mcompress", Type: cdx.ComponentTypeApplication, Name: "mcompress", Version: r.version.tag(),
		Description: "program for " + p.target.String(),
		Hashes:      &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}},
		Licenses:    licenses([]string{"Apache-2.0"}),
		PackageURL:  "pkg:golang/" + module + "@" + r.version.tag() + "#cmd/mcompress",
	}
	var components []cdx.Component
	var refs []string
	for _, m := range p.modules {
		url := "pkg:golang/" + m.Path + "@" + m.Version
		components = append(components, cdx.Component{
			BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, Scope: cdx.ScopeRequired,
			Licenses: licenses(m.ids), PackageURL: url,
		})
		refs = append(refs, url)
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = "urn:uuid:" + uuid(sum)
	bom.Metadata = &cdx.Metadata{Timestamp: r.epoch.Format(time.RFC3339), Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: "mcompress", Dependencies: &refs}}
	var b bytes.Buffer
	err := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	return b.Bytes(), err
}

func licenses(ids []string) *cdx.Licenses {
	var list cdx.Licenses
	for _, id := range ids {
		list = append(list, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &list
}

// uuid returns a UUID of version 8, whose bits the application chooses (RFC 9562, section 5.8).
func uuid(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
