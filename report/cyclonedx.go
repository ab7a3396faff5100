package report

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/report/verification"
)

// CycloneDX writes r as a bill of materials of a machine-learning model (ML-BOM), in CycloneDX 1.7 as JSON: the result
// with its source as ancestor, what was measured, and the data. It is a function of the report: the serial number
// follows from the digest, and there is no time. https://cyclonedx.org/docs/1.7/json/
func (r *Report) CycloneDX(w io.Writer, card Card) error {
	sum := r.Digest
	if sum == "" {
		var err error
		if sum, err = r.digest(context.Background()); err != nil {
			return err
		}
	}
	m := materials{r, card}
	b := bom{
		Schema: "http://cyclonedx.org/schema/bom-1.7.schema.json", Format: "CycloneDX", Spec: "1.7",
		Serial: serialNumber(sum), Version: 1,
		Components: m.data(),
	}
	b.Metadata.Tools.Components = []component{{Type: "application", Name: r.Tool.Name, Version: r.Tool.Version}}
	b.Metadata.Component = m.result()
	b.Metadata.Properties = []property{{"mcompress:report_digest", sum}}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(b)
}

// materials are the components of a bill of materials.
type materials struct {
	*Report
	card Card
}

// serialNumber is a UUID of version 8 (RFC 9562) from the first bytes of a SHA-256.
func serialNumber(digest string) string {
	b := sha256.Sum256([]byte("mcompress CycloneDX " + digest))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:16])
	return "urn:uuid:" + strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// result is the result, with its pedigree and its model card.
func (m materials) result() component {
	c := modelComponent("result", m.Result)
	c.Pedigree = &pedigree{Ancestors: []component{modelComponent("source", m.Source)}}
	c.Properties = append(c.Properties,
		property{"mcompress:compression_ratio", decimal(m.Totals.Ratio)},
		property{"mcompress:coverage", decimal(m.Coverage.Fraction)},
		property{"mcompress:verdict", m.Verdict.Text()},
	)
	if m.Recipe != nil {
		c.Pedigree.Notes = m.Recipe.Text
		c.Properties = append(c.Properties, property{"mcompress:recipe_sha256", m.Recipe.SHA256})
	}
	c.ModelCard = m.modelCard()
	c.References = []externalReference{{URL: reference(Stem(main(m.Result)) + JSONSuffix), Type: "quality-metrics"}}
	return c
}

// modelComponent is one of the two models; its data files are components in it.
func modelComponent(ref string, s Side) component {
	first := s.Files[0]
	c := component{Ref: ref, Type: typeModel, Name: first.Name, Hashes: hashes(first.SHA256)}
	c.Properties = []property{
		{"mcompress:bytes", strconv.FormatInt(first.Bytes, 10)},
		{"onnx:ir_version", strconv.FormatInt(s.IRVersion, 10)},
	}
	for _, o := range s.Opsets {
		c.Properties = append(
			c.Properties,
			property{"onnx:opset:" + cmp.Or(o.Domain, "ai.onnx"), strconv.FormatInt(o.Version, 10)},
		)
	}
	for i, f := range s.Files[1:] {
		c.Components = append(c.Components, component{
			Ref: fmt.Sprintf("%s-data-%d", ref, i+1), Type: "file", Name: f.Name, Hashes: hashes(f.SHA256),
			Properties: []property{{"mcompress:bytes", strconv.FormatInt(f.Bytes, 10)}},
		})
	}
	return c
}

func hashes(sum string) []hash {
	if sum == "" {
		return nil
	}
	return []hash{{"SHA-256", sum}}
}

// reference is the name of a file as a relative URL.
func reference(name string) string { return (&url.URL{Path: name}).String() }

func decimal(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// modelCard has the measured figures, those of the source too, each with its samples.
func (m materials) modelCard() *modelCard {
	c := &modelCard{}
	c.Parameters.Task = m.card.PipelineTag
	for _, d := range m.data() {
		if d.Type == typeData {
			c.Parameters.Datasets = append(c.Parameters.Datasets, dataset{d.Ref})
		}
	}
	var figures []performanceMetric
	for _, q := range measured(m.Verification) {
		slice := samplesText(m.Verification)
		if q.Output != "" {
			slice = "output " + q.Output + ", compared with that of the source; " + slice
		}
		if q.Before != nil {
			figures = append(figures, performanceMetric{q.ID + " of the source", decimal(*q.Before), slice})
		}
		figures = append(figures, performanceMetric{q.ID, decimal(*q.After), slice})
	}
	if figures != nil {
		c.Analysis = &quantitativeAnalysis{figures}
	}
	if limits := m.limitations(); limits != nil {
		c.Considerations = &considerations{limits}
	}
	return c
}

func samplesText(v *verification.Result) string {
	if v.Data == nil {
		return "unknown samples"
	}
	return v.Data.Text()
}

// limitations are those of the result at run time, and of the evidence.
func (m materials) limitations() []string {
	limits := m.Hints
	if v := view(m.Verification); v != nil && v.Caveat != "" {
		// Without capacity: append must not write into the hints of the report.
		limits = append(limits[:len(limits):len(limits)], v.Caveat)
	}
	return limits
}

// data are the samples of the verification, and the inputs of the recipe.
func (m materials) data() []component {
	var all []component
	if v := m.Verification; v != nil && v.Data != nil && !v.Data.Generated {
		all = append(
			all,
			dataComponent(
				"data-verification",
				samplesName(v.Data),
				v.Data.SHA256,
				"samples that both models were run on; the hash is that of the samples",
			),
		)
	}
	if m.Recipe != nil {
		for i, in := range m.Recipe.Inputs {
			all = append(
				all,
				dataComponent(
					fmt.Sprintf("data-recipe-%d", i+1),
					in.Name,
					in.SHA256,
					"input of the recipe; the hash is that of the file, or of a list of several as sha256sum prints it",
				),
			)
		}
	}
	return all
}

func samplesName(d *verification.Data) string { return cmp.Or(d.Name, "samples") }

// dataComponent is a data set, or a model that a step reads, such as a teacher.
func dataComponent(ref, name, sum, purpose string) component {
	c := component{Ref: ref, Type: typeData, Name: name, Description: purpose, Hashes: hashes(sum)}
	if Stem(name) != name {
		c.Type = typeModel
		return c
	}
	c.Data = []componentData{{"dataset", name}}
	return c
}

// The types of components.
const (
	typeModel = "machine-learning-model"
	typeData  = "data"
)

// The objects of CycloneDX 1.7 that a bill of a model has, with their properties in the order in which cyclonedx-go
// writes them.
type (
	bom struct {
		Schema   string `json:"$schema"`
		Format   string `json:"bomFormat"`
		Spec     string `json:"specVersion"`
		Serial   string `json:"serialNumber"`
		Version  int    `json:"version"`
		Metadata struct {
			Tools struct {
				Components []component `json:"components"`
			} `json:"tools"`
			Component  component  `json:"component"`
			Properties []property `json:"properties"`
		} `json:"metadata"`
		Components []component `json:"components,omitempty"`
	}
	component struct {
		Ref         string              `json:"bom-ref,omitempty"`
		Type        string              `json:"type"`
		Name        string              `json:"name"`
		Version     string              `json:"version,omitempty"`
		Description string              `json:"description,omitempty"`
		Hashes      []hash              `json:"hashes,omitempty"`
		Pedigree    *pedigree           `json:"pedigree,omitempty"`
		References  []externalReference `json:"externalReferences,omitempty"`
		Properties  []property          `json:"properties,omitempty"`
		Components  []component         `json:"components,omitempty"`
		ModelCard   *modelCard          `json:"modelCard,omitempty"`
		Data        []componentData     `json:"data,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	pedigree struct {
		Ancestors []component `json:"ancestors"`
		Notes     string      `json:"notes,omitempty"`
	}
	externalReference struct {
		URL  string `json:"url"`
		Type string `json:"type"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value,omitempty"`
	}
	componentData struct {
		Type string `json:"type"`
		Name string `json:"name,omitempty"`
	}
	modelCard struct {
		Parameters struct {
			Task     string    `json:"task,omitempty"`
			Datasets []dataset `json:"datasets,omitempty"`
		} `json:"modelParameters"`
		Analysis       *quantitativeAnalysis `json:"quantitativeAnalysis,omitempty"`
		Considerations *considerations       `json:"considerations,omitempty"`
	}
	dataset struct {
		Ref string `json:"ref"`
	}
	quantitativeAnalysis struct {
		Metrics []performanceMetric `json:"performanceMetrics"`
	}
	performanceMetric struct {
		Type  string `json:"type,omitempty"`
		Value string `json:"value,omitempty"`
		Slice string `json:"slice,omitempty"`
	}
	considerations struct {
		Limitations []string `json:"technicalLimitations"`
	}
)
