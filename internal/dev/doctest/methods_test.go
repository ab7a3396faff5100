package doctest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
)

// pageOf is the page of the guide about the methods of a command.
var pageOf = map[string]string{"quantize": "quantization.md", "prune": "pruning.md", "sparse": "pruning.md",
	"finetune": "training.md", "distill": "training.md"}

// TestMethodsAreInTheGuide requires that the guide and the glossary name every method.
func TestMethodsAreInTheGuide(t *testing.T) {
	glossary := read(t, root(t), "docs", "glossary.md")
	for _, m := range mcompress.Methods() {
		page := pageOf[m.Command]
		if page == "" {
			t.Errorf("no page of the guide is about the command %s: add it to pageOf", m.Command)
			continue
		}
		named := regexp.MustCompile("`[^`\n]*\\b" + regexp.QuoteMeta(m.Name) + "\\b[^`\n]*`")
		if !named.MatchString(read(t, root(t), "docs", "guide", page)) {
			t.Errorf("docs/guide/%s does not name %s: add it to the table, or a sentence", page, m.Name)
		}
		if chooses := m.Name == "auto" || m.Name == "dense"; !chooses && !named.MatchString(glossary) {
			t.Errorf("docs/glossary.md does not name %s: add a row with its source", m.Name)
		}
	}
}

// TestQuantizationTableHoldsWhatMethodsDeclare compares the table of docs/guide/quantization.md with the declaration of
// each method and with the opset of its result.
func TestQuantizationTableHoldsWhatMethodsDeclare(t *testing.T) {
	page := read(t, root(t), "docs", "guide", "quantization.md")
	for _, m := range mcompress.Methods() {
		if m.Command != "quantize" || m.Stage != pass.Quantize {
			continue
		}
		rows := tableRows(page, m.Name)
		opset := lowestOpset(t, m)
		if len(rows) == 0 {
			t.Errorf("the table in docs/guide/quantization.md has no row for %s: calibration data %s, lowest opset %d", m.Name, calibrationData(m), opset)
			continue
		}
		for _, cells := range rows {
			if got := cells[3] == "yes"; got != m.Calibrates {
				t.Errorf("docs/guide/quantization.md: %s: calibration data is %q, the method declares %s", m.Name,
					cells[3], calibrationData(m))
			}
		}
		if !slices.ContainsFunc(rows, func(cells []string) bool {
			return slices.Contains(opsetsOf(cells[5], m.Name),
				opset)
		}) {
			t.Errorf("docs/guide/quantization.md: %s: no row has the lowest opset %d", m.Name, opset)
		}
	}
}

func calibrationData(m *pass.Method) string {
	if m.Calibrates {
		return "yes"
	}
	return "no"
}

// tableRows are the rows, as cells, whose first cell names a method.
func tableRows(page, method string) (rows [][]string) {
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(line, "|\n "), " | ")
		if len(cells) == 6 && (strings.Contains(cells[0], "`"+method+"`") ||
			strings.Contains(cells[0], "`"+method+" ")) {
			rows = append(rows, cells)
		}
	}
	return rows
}

var number = regexp.MustCompile(`\d+\b`)

// opsetsOf are the opsets in a cell such as "21; int2 25".
func opsetsOf(cell, method string) (opsets []int64) {
	for _, n := range number.FindAllString(strings.ReplaceAll(cell, "`"+method+"`", ""), -1) {
		v, _ := strconv.ParseInt(n, 10, 64)
		opsets = append(opsets, v)
	}
	return opsets
}

// lowestOpset is the opset of a method's result, from a source with MatMul, Gemm and an old opset.
func lowestOpset(t *testing.T, m *pass.Method) int64 {
	t.Helper()
	step, err := pass.NewStep(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.onnx")
	if _, err := (mcompress.Request{Models: []string{filepath.Join(root(t), "fixtures", "opset7.onnx")}, Output: out,
		Steps: []mcompress.Step{step}, Target: "embedded"}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := onnx.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Model.Opset("")
}

// template matches a block of a file that a checklist of docs/architecture.md starts from.
var template = regexp.MustCompile("(?ms)^( *)```go\n *// (\\S+)/(\\w+\\.go)\n(.*?)^ *```\n")

// TestTemplatesCompile vets the templates in docs/architecture.md, each as an additional file of its package.
func TestTemplatesCompile(t *testing.T) {
	t.Parallel()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	var packages []string
	for _, m := range template.FindAllStringSubmatch(read(t, root(t), "docs", "architecture.md"), -1) {
		indent, dir, name, text := m[1], m[2], m[3], m[4]
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(strings.ReplaceAll("\n"+text, "\n"+indent, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(root(t), filepath.FromSlash(dir), name)] = file
		packages = append(packages, "./"+dir)
	}
	if len(packages) != 5 {
		t.Errorf("docs/architecture.md has %d templates, want 5: weight quantization, calibration, pruning, sparse, training", len(packages))
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, list, 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("go", append([]string{"vet", "-overlay", file}, packages...)...)
	c.Dir = root(t)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("docs/architecture.md: %v\n%s", err, bytes.TrimSpace(out))
	}
}
