package report

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/mcompress/mcompress/report/verification"
)

// CycloneDX writes r as a bill of materials of a machine-learning model (ML-BOM), in CycloneDX 1.7 as JSON: the result with its source as ancestor, what was
// measured, and the data. It is a function of the report: the serial number follows from the digest, and there is no time.
// https://cyclonedx.org/docs/1.7/json/
func (r *Report) CycloneDX(w io.Writer, card Card) error {
	sum := r.Digest
	if sum == "" {
		var err error
		if sum, err = r.digest(context.Background()); err != nil {
			return err
		}
	}
	m := materials{r, card}
	bom := cdx.NewBOM()
	bom.SerialNumber = serialNumber(sum)
	result := m.result()
	bom.Metadata = &cdx.Metadata{
		Component:  &result,
		Tools:      &cdx.ToolsChoice{Components: &[]cdx.Component{{Type: cdx.ComponentTypeApplication, Name: r.Tool.Name, Version: r.Tool.Version}}},
		Properties: &[]cdx.Property{{Name: "mcompress:report_digest", Value: sum}},
	}
	if data := m.data(); len(data) > 0 {
		bom.Components = &data
	}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_7)
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
func (m materials) result() cdx.Component {
	c := modelComponent("result", m.Result)
	source := modelComponent("source", m.Source)
	c.Pedigree = &cdx.Pedigree{Ancestors: &[]cdx.Component{source}}
	properties := []cdx.Property{
		{Name: "mcompress:compression_ratio", Value: decimal(m.Totals.Ratio)},
		{Name: "mcompress:coverage", Value: decimal(m.Coverage.Fraction)},
		{Name: "mcompress:verdict", Value: m.Verdict.Text()},
	}
	if m.Recipe != nil {
		c.Pedigree.Notes = m.Recipe.Text
		properties = append(properties, cdx.Property{Name: "mcompress:recipe_sha256", Value: m.Recipe.SHA256})
	}
	*c.Properties = append(*c.Properties, properties...)
	c.ModelCard = m.modelCard()
	c.ExternalReferences = &[]cdx.ExternalReference{{Type: cdx.ERTypeQualityMetrics, URL: reference(Stem(main(m.Result)) + JSONSuffix)}}
	return c
}

// modelComponent is one of the two models; its data files are components in it.
func modelComponent(ref string, s Side) cdx.Component {
	first := s.Files[0]
	c := cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeMachineLearningModel, Name: first.Name, Hashes: hashes(first.SHA256)}
	c.Properties = &[]cdx.Property{{Name: "mcompress:bytes", Value: strconv.FormatInt(first.Bytes, 10)}, {Name: "onnx:ir_version", Value: strconv.FormatInt(s.IRVersion, 10)}}
	for _, o := range s.Opsets {
		*c.Properties = append(*c.Properties, cdx.Property{Name: "onnx:opset:" + cmp.Or(o.Domain, "ai.onnx"), Value: strconv.FormatInt(o.Version, 10)})
	}
	var files []cdx.Component
	for i, f := range s.Files[1:] {
		files = append(files, cdx.Component{
			BOMRef: fmt.Sprintf("%s-data-%d", ref, i+1), Type: cdx.ComponentTypeFile, Name: f.Name, Hashes: hashes(f.SHA256),
			Properties: &[]cdx.Property{{Name: "mcompress:bytes", Value: strconv.FormatInt(f.Bytes, 10)}},
		})
	}
	if files != nil {
		c.Components = &files
	}
	return c
}

func hashes(sum string) *[]cdx.Hash {
	if sum == "" {
		return nil
	}
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}
}

// reference is the name of a file as a relative URL.
func reference(name string) string { return (&url.URL{Path: name}).String() }

func decimal(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// modelCard has the measured figures, those of the source too, each with its samples.
func (m materials) modelCard() *cdx.MLModelCard {
	c := &cdx.MLModelCard{ModelParameters: &cdx.MLModelParameters{Task: m.card.PipelineTag}}
	var sets []cdx.MLDatasetChoice
	for _, d := range m.data() {
		if d.Type == cdx.ComponentTypeData {
			sets = append(sets, cdx.MLDatasetChoice{Ref: d.BOMRef})
		}
	}
	if sets != nil {
		c.ModelParameters.Datasets = &sets
	}
	var metrics []cdx.MLPerformanceMetric
	for _, q := range measured(m.Verification) {
		slice := samplesText(m.Verification)
		if q.Output != "" {
			slice = "output " + q.Output + ", compared with that of the source; " + slice
		}
		if q.Before != nil {
			metrics = append(metrics, cdx.MLPerformanceMetric{Type: q.ID + " of the source", Value: decimal(*q.Before), Slice: slice})
		}
		metrics = append(metrics, cdx.MLPerformanceMetric{Type: q.ID, Value: decimal(*q.After), Slice: slice})
	}
	if metrics != nil {
		c.QuantitativeAnalysis = &cdx.MLQuantitativeAnalysis{PerformanceMetrics: &metrics}
	}
	if limits := m.limitations(); limits != nil {
		c.Considerations = &cdx.MLModelCardConsiderations{TechnicalLimitations: &limits}
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
		limits = append(limits[:len(limits):len(limits)], v.Caveat)
	}
	return limits
}

// data are the samples of the verification, and the inputs of the recipe.
func (m materials) data() []cdx.Component {
	var all []cdx.Component
	if v := m.Verification; v != nil && v.Data != nil && !v.Data.Generated {
		all = append(all, dataComponent("data-verification", samplesName(v.Data), v.Data.SHA256, "samples that both models were run on; the hash is that of the samples"))
	}
	if m.Recipe != nil {
		for i, in := range m.Recipe.Inputs {
			all = append(all, dataComponent(fmt.Sprintf("data-recipe-%d", i+1), in.Name, in.SHA256, "input of the recipe; the hash is that of the file, or of a list of several as sha256sum prints it"))
		}
	}
	return all
}

func samplesName(d *verification.Data) string { return cmp.Or(d.Name, "samples") }

// dataComponent is a data set, or a model that a step reads, such as a teacher.
func dataComponent(ref, name, sum, purpose string) cdx.Component {
	c := cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeData, Name: name, Description: purpose, Hashes: hashes(sum)}
	if Stem(name) != name {
		c.Type = cdx.ComponentTypeMachineLearningModel
		return c
	}
	c.Data = &[]cdx.ComponentData{{Type: cdx.ComponentDataTypeDataset, Name: name}}
	return c
}
