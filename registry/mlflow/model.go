package mlflow

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/registry/internal/reported"
	"github.com/mcompress/mcompress/report/verification"
)

// maxDescription is the number of characters that MLflow's column of descriptions has.
const maxDescription = 5000

// maxParam is the number of characters of a parameter of MLflow.
const maxParam = 6000

// mlmodelName is the file that makes a folder a model of MLflow.
const mlmodelName = "MLmodel"

// reportFacts are the figures of a report that MLflow has as metrics, parameters and tags.
type reportFacts struct {
	digest   string
	tool     struct{ Name, Version string }
	recipe   struct{ Text string }
	source   struct{ Files []registry.File }
	totals   reportTotals
	coverage struct {
		Fraction *float64 `json:"share"`
	}
	verification verification.Result
}

type reportTotals struct {
	Ratio        float64
	FileBytes    reported.Change `json:"file_bytes"`
	RuntimeBytes reported.Change `json:"runtime_bytes"`
}

// readFacts reads a report; nil if the artifact has none.
func readFacts(a *registry.Artifact) (*reportFacts, error) {
	f, ok := a.Find(registry.ReportJSON)
	if !ok {
		return nil, nil
	}
	r, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	x := &reportFacts{}
	err = reported.Decode(r, map[string]any{
		"digest": &x.digest, "tool": &x.tool, "recipe": &x.recipe, "source": &x.source, "totals": &x.totals,
		"coverage": &x.coverage, "verification": &x.verification,
	})
	if err != nil {
		return nil, &registry.ContentError{What: f.Path, Err: err}
	}
	return x, nil
}

// prepare makes the documents that are pushed in addition to the files.
func (p *pusher) prepare(ctx context.Context) error {
	for _, f := range p.artifact.Files {
		if f.Name == mlmodelName || f.Name == manifestName {
			return &registry.ContentError{What: f.Name, Err: errors.New("a file of this name is made for MLflow")}
		}
	}
	var err error
	if p.facts, err = readFacts(p.artifact); err != nil {
		return err
	}
	if p.manifest, err = json.MarshalIndent(fileList{p.listed()}, "", "  "); err != nil {
		return err
	}
	sum := sha256.Sum256(p.manifest)
	p.digest = hex.EncodeToString(sum[:])
	model, err := p.artifact.Model()
	if err != nil {
		return err
	}
	if p.signature, err = signature(ctx, model.Path); err != nil {
		return err
	}
	text, ok := p.artifact.Find(registry.ReportText)
	if !ok {
		return nil
	}
	r, err := os.Open(text.Path)
	if err != nil {
		return err
	}
	defer r.Close()
	p.head, err = io.ReadAll(io.LimitReader(r, maxDescription*utf8.UTFMax))
	return err
}

// listed are the files of the manifest: all but the page, which has the time of the run. Equal runs thus have equal
// manifests.
func (p *pusher) listed() []registry.File {
	return slices.DeleteFunc(slices.Clone(p.artifact.Files), func(f registry.File) bool {
		return f.Role == registry.ReportPage
	})
}

// tags are those of the run, the logged model and the version.
func (p *pusher) tags() []tag {
	model, _ := p.artifact.Model()
	tags := []tag{{tagDigest, p.digest}, {"mcompress.model.sha256", model.SHA256}}
	if x := p.facts; x != nil {
		tags = append(
			tags,
			tag{"mcompress.report.digest", x.digest},
			tag{"mcompress.version", x.tool.Version},
		)
		if len(x.source.Files) > 0 && x.source.Files[0].SHA256 != "" {
			tags = append(tags, tag{"mcompress.source.sha256", x.source.Files[0].SHA256})
		}
	}
	return slices.DeleteFunc(tags, func(t tag) bool { return t.Value == "" })
}

// params are the recipe, if it is short enough.
func (p *pusher) params() []tag {
	if p.facts == nil || p.facts.recipe.Text == "" || len(p.facts.recipe.Text) > maxParam {
		return []tag{}
	}
	return []tag{{"recipe", p.facts.recipe.Text}}
}

// A metric is a figure of a run and of its logged model.
type metric struct {
	Key       string  `json:"key"`
	Value     float64 `json:"value"`
	Timestamp int64   `json:"timestamp"`
	Step      int64   `json:"step"`
	Model     string  `json:"model_id"`
}

// metrics are the figures of the report that are finite.
func (p *pusher) metrics() []metric {
	list, now := []metric{}, milliseconds()
	add := func(key string, v *float64) {
		if v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0) {
			list = append(list, metric{Key: key, Value: *v, Timestamp: now, Model: p.logged.Info.ID})
		}
	}
	count := func(key string, c reported.Change) {
		before, after := float64(c.Before), float64(c.After)
		add(key, &after)
		add("source_"+key, &before)
	}
	x := p.facts
	if x == nil {
		add("file_bytes", ptr(float64(modelSize(p.artifact))))
		return list
	}
	count("file_bytes", x.totals.FileBytes)
	count("runtime_bytes", x.totals.RuntimeBytes)
	add("compression_ratio", &x.totals.Ratio)
	add("coverage", x.coverage.Fraction)
	v := &x.verification
	if o := v.Worst(); o != nil {
		add("top1_agreement", o.Agreement)
		if o.Errors != nil {
			add("output_sqnr_db", o.Errors.SQNR)
			add("output_cosine", o.Errors.Cosine)
			add("output_max_abs_error", o.Errors.Max)
		}
	}
	if v.Accuracy != nil {
		add("accuracy", &v.Accuracy.After)
		add("source_accuracy", v.Accuracy.Before)
	}
	if v.Metric != nil {
		key := metricKey(v.Metric.Name)
		add(key, v.Metric.After)
		add("source_"+key, v.Metric.Before)
	}
	if v.Latency != nil {
		add("latency_seconds", &v.Latency.After)
		add("source_latency_seconds", &v.Latency.Before)
	}
	return list
}

func ptr(x float64) *float64 { return &x }

// modelSize is the number of bytes of the model and its external data.
func modelSize(a *registry.Artifact) int64 {
	weights := &registry.Artifact{Files: slices.DeleteFunc(slices.Clone(a.Files), func(f registry.File) bool {
		return f.Role != registry.Model && f.Role != registry.Data
	})}
	return weights.Size()
}

// metricKey is a name with the characters that MLflow accepts.
func metricKey(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 &&
			(r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '_'
	}, name)
}

// description is the head of the report, up to the end of a line.
func (p *pusher) description() string {
	text := []rune(string(bytes.ToValidUTF8(p.head, nil)))
	if len(text) <= maxDescription && len(p.head) < maxDescription*utf8.UTFMax {
		return string(text)
	}
	report, _ := p.artifact.Find(registry.ReportText)
	more := []rune("\n\n(The rest is in the artifact " + report.Name + ".)")
	text = text[:min(len(text), maxDescription-len(more))]
	if end := slices.Index(reversed(text), '\n'); end >= 0 {
		text = text[:len(text)-end-1]
	}
	return string(text) + string(more)
}

func reversed(text []rune) []rune {
	text = slices.Clone(text)
	slices.Reverse(text)
	return text
}

// texts are the files that make the artifacts a model of MLflow's flavor onnx (mlflow.models.Model and mlflow.onnx),
// and the manifest.
func (p *pusher) texts() map[string]string {
	const requirements = "onnx\nonnxruntime\n"
	model, _ := p.artifact.Model()
	name := strconv.Quote(model.Name)
	mlmodel := fmt.Sprintf(`flavors:
  onnx:
    code: null
    data: %s
  python_function:
    data: %[1]s
    env:
      conda: conda.yaml
      virtualenv: python_env.yaml
    loader_module: mlflow.onnx
mlflow_version: 3.17.2
model_id: %s
model_size_bytes: %d
model_uuid: %[2]s
run_id: %[4]s
`, name, p.logged.Info.ID, modelSize(p.artifact), p.runID)
	if p.signature != nil {
		mlmodel += fmt.Sprintf(
			"signature:\n  inputs: %s\n  outputs: %s\n  params: null\n",
			yamlText(p.signature.Inputs),
			yamlText(p.signature.Outputs),
		)
	}
	return map[string]string{
		mlmodelName:        mlmodel,
		manifestName:       string(p.manifest),
		"requirements.txt": requirements,
		"conda.yaml": "channels:\n- conda-forge\ndependencies:\n- pip\n- pip:\n  - mlflow\n  - onnx\n" +
			"  - onnxruntime\nname: mlflow-env\n",
		"python_env.yaml": "dependencies:\n- -r requirements.txt\n",
	}
}

// yamlText is JSON as a string of YAML.
func yamlText(v any) string {
	inner, _ := json.Marshal(v) // structs of strings and numbers
	outer, _ := json.Marshal(string(inner))
	return string(outer)
}

// A modelSignature is the inputs and outputs of a model (mlflow.models.ModelSignature).
type modelSignature struct{ Inputs, Outputs []tensorSpec }

type tensorSpec struct {
	Type   string `json:"type"`
	Name   string `json:"name"`
	Tensor struct {
		DType string  `json:"dtype"`
		Shape []int64 `json:"shape"`
	} `json:"tensor-spec"`
}

// numpyTypes are the element types that NumPy has.
var numpyTypes = map[ir.DType]string{
	ir.Float: "float32", ir.Double: "float64", ir.Float16: "float16", ir.Bool: "bool", ir.String: "object",
	ir.Int8: "int8", ir.Int16: "int16", ir.Int32: "int32", ir.Int64: "int64", ir.Uint8: "uint8", ir.Uint16: "uint16",
	ir.Uint32: "uint32", ir.Uint64: "uint64",
	ir.Complex64: "complex64", ir.Complex128: "complex128",
}

// signature reads the inputs and outputs of a model; nil if one of them has no type or rank, or a type that NumPy does
// not have.
func signature(ctx context.Context, path string) (*modelSignature, error) {
	f, err := onnx.OpenContext(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &modelSignature{}
	for _, side := range []struct {
		values []*ir.Value
		to     *[]tensorSpec
	}{{f.Model.Graph.Inputs, &s.Inputs}, {f.Model.Graph.Outputs, &s.Outputs}} {
		for _, v := range side.values {
			if v.Const != nil && v.IsInput() {
				continue // an initializer with a default value
			}
			if v.Type == nil || v.Type.Shape == nil || numpyTypes[v.Type.Elem] == "" {
				return nil, nil
			}
			spec := tensorSpec{Type: "tensor", Name: v.Name}
			spec.Tensor.DType, spec.Tensor.Shape = numpyTypes[v.Type.Elem], []int64{}
			for _, d := range v.Type.Shape {
				if !d.Known() {
					d.N = -1
				}
				spec.Tensor.Shape = append(spec.Tensor.Shape, d.N)
			}
			*side.to = append(*side.to, spec)
		}
	}
	return s, nil
}
