package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/url"
)

// BuildType identifies how a result follows from the external parameters of its provenance; the page documents it.
const BuildType = "https://github.com/mcompress/mcompress/blob/main/docs/guide/evidence.md#build-type-compression-v1"

const (
	statementType  = "https://in-toto.io/Statement/v1"
	provenanceType = "https://slsa.dev/provenance/v1"
	builderID      = "https://github.com/mcompress/mcompress"
)

// A provenanceStatement is an in-toto statement: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
type provenanceStatement struct {
	Type          string       `json:"_type"`
	Subject       []descriptor `json:"subject"`
	PredicateType string       `json:"predicateType"`
	Predicate     provenance   `json:"predicate"`
}

// A descriptor is a resource: https://github.com/in-toto/attestation/blob/main/spec/v1/resource_descriptor.md
type descriptor struct {
	Name        string            `json:"name,omitempty"`
	URI         string            `json:"uri,omitempty"`
	Digest      map[string]string `json:"digest,omitempty"`
	MediaType   string            `json:"mediaType,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// A provenance is the predicate: https://slsa.dev/spec/v1.0/provenance
type provenance struct {
	Definition struct {
		BuildType          string         `json:"buildType"`
		ExternalParameters map[string]any `json:"externalParameters"`
		InternalParameters map[string]any `json:"internalParameters"`
		Dependencies       []descriptor   `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	Run struct {
		Builder struct {
			ID      string            `json:"id"`
			Version map[string]string `json:"version"`
		} `json:"builder"`
		Byproducts []descriptor `json:"byproducts"`
	} `json:"runDetails"`
}

// InToto writes r as an unsigned in-toto statement about the files of the result, with their SLSA provenance v1, as
// JSON. A report without digests is an error.
func (r *Report) InToto(w io.Writer) error {
	s := provenanceStatement{Type: statementType, PredicateType: provenanceType}
	for _, f := range r.Result.Files {
		if f.SHA256 == "" {
			return errors.New("the report has no digests of files, which an in-toto statement requires")
		}
		s.Subject = append(s.Subject, descriptor{Name: f.Name, Digest: sha256Set(f.SHA256)})
	}
	d := &s.Predicate.Definition
	d.BuildType = BuildType
	d.ExternalParameters = map[string]any{"source": main(r.Source)}
	d.InternalParameters = map[string]any{}
	if r.Recipe != nil {
		d.ExternalParameters["recipe"] = r.Recipe.Text
		d.InternalParameters["recipe_sha256"] = r.Recipe.SHA256
	}
	if len(r.Gates) > 0 {
		bounds := map[string]any{}
		for _, g := range r.Gates {
			bounds[g.Name] = g.Bound
		}
		d.ExternalParameters["gates"] = bounds
	}
	d.Dependencies = dependencies(r)
	s.Predicate.Run.Builder.ID = builderID
	s.Predicate.Run.Builder.Version = map[string]string{r.Tool.Name: r.Tool.Version}
	document, err := reportDocument(r)
	if err != nil {
		return err
	}
	s.Predicate.Run.Byproducts = []descriptor{document}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

// dependencies are the files of the source, the data, the inputs of the recipe, and the tool.
func dependencies(r *Report) []descriptor {
	var all []descriptor
	add := func(name, sum, role string) {
		d := descriptor{Name: name, Digest: sha256Set(sum), Annotations: map[string]string{"role": role}}
		if sum == "" {
			d.URI = reference(name) // a resource has at least one of both
		}
		all = append(all, d)
	}
	for _, f := range r.Source.Files {
		add(f.Name, f.SHA256, "source model")
	}
	if v := r.Verification; v != nil && v.Data != nil && !v.Data.Generated {
		add(samplesName(v.Data), v.Data.SHA256, "samples of the verification")
	}
	if r.Recipe != nil {
		for _, in := range r.Recipe.Inputs {
			add(in.Name, in.SHA256, "input of the recipe")
		}
	}
	purl := "pkg:golang/github.com/mcompress/mcompress@" + url.PathEscape(r.Tool.Version)
	return append(all, descriptor{Name: r.Tool.Name, URI: purl, Annotations: map[string]string{"role": "tool"}})
}

// reportDocument is the JSON form of the report.
func reportDocument(r *Report) (descriptor, error) {
	h := sha256.New()
	if err := r.JSON(h); err != nil {
		return descriptor{}, err
	}
	return descriptor{
		Name: Stem(main(r.Result)) + JSONSuffix, MediaType: "application/json",
		Digest:      sha256Set(hex.EncodeToString(h.Sum(nil))),
		Annotations: map[string]string{"digest": r.Digest, "verdict": r.Verdict.Text()},
	}, nil
}

// sha256Set is a digest set; nil for none.
func sha256Set(sum string) map[string]string {
	if sum == "" {
		return nil
	}
	return map[string]string{"sha256": sum}
}
