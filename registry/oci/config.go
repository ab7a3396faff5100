package oci

import (
	"os"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/registry/internal/reported"
)

// A modelConfig is the config of a model (ModelPack, config.md).
type modelConfig struct {
	Descriptor struct {
		Name string `json:"name"`
	} `json:"descriptor"`
	ModelFS struct {
		Type    string          `json:"type"`
		DiffIDs []digest.Digest `json:"diffIds"`
	} `json:"modelfs"`
	Config struct {
		Format       string `json:"format"`
		Precision    string `json:"precision,omitempty"`    // element type of most bytes
		Quantization string `json:"quantization,omitempty"` // methods, in order
	} `json:"config"`
}

// describe adds the precision and the methods as given by the report.
func (c *modelConfig) describe(a *registry.Artifact) error {
	f, ok := a.Find(registry.ReportJSON)
	if !ok {
		return nil
	}
	r, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	defer r.Close()
	var recipe struct{ Text string }
	var totals struct {
		DTypes []struct {
			DType string
			Bytes reported.Change
		}
	}
	if err := reported.Decode(r, map[string]any{"recipe": &recipe, "totals": &totals}); err != nil {
		return &registry.ContentError{What: f.Path, Err: err}
	}
	most := int64(0)
	for _, t := range totals.DTypes {
		if t.Bytes.After > most {
			most, c.Config.Precision = t.Bytes.After, t.DType
		}
	}
	if c.Config.Precision == "" || c.Config.Precision == "float" {
		return nil // pruned, perhaps, but not quantized
	}
	var parsed struct{ Steps []struct{ Method string } }
	if err := bounded.YAML([]byte(recipe.Text), &parsed); err != nil {
		return &registry.ContentError{What: f.Path, Err: err}
	}
	var methods []string
	for _, s := range parsed.Steps {
		methods = append(methods, s.Method)
	}
	c.Config.Quantization = strings.Join(methods, ", ")
	return nil
}
