package report

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/mcompress/mcompress/pass"
)

// A Card is what a model card of the Hugging Face Hub needs besides reports.
type Card struct {
	BaseModel   string   // ID of the source on the Hub, as OWNER/NAME; empty for a model that is not there
	PipelineTag string   // task of the model, such as "image-classification"; empty if unknown
	Library     string   // that loads the model; empty for "onnx"
	Title       string   // empty for the name of the first result
	Folder      string   // of the models in the repository, such as "onnx"; empty for its root
	DTypes      []string // by which transformers.js chooses the result of each report; nil if it does not load them
}

// modelID is the form of names on the Hub.
var modelID = regexp.MustCompile(`^[\w][\w.-]*(/[\w][\w.-]*)?$`)

// Check returns an error if the base model or the task cannot be one of the Hub.
func (c Card) Check() error {
	if c.BaseModel != "" && !modelID.MatchString(c.BaseModel) {
		return fmt.Errorf("base model %q is no name of the Hugging Face Hub: OWNER/NAME is", c.BaseModel)
	}
	if c.PipelineTag != "" && !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(c.PipelineTag) {
		return fmt.Errorf(
			"task %q is no pipeline tag of the Hugging Face Hub, such as image-classification",
			c.PipelineTag,
		)
	}
	return nil
}

// Write writes the model card of the results of reports on one source, of which there is at least one: metadata in
// YAML, with the figures that were measured on samples from files, and text in Markdown.
// https://huggingface.co/docs/hub/model-cards
func (c Card) Write(w io.Writer, reports ...*Report) error {
	if err := c.Check(); err != nil {
		return err
	}
	meta, err := yaml.MarshalWithOptions(c.metadata(reports), yaml.IndentSequence(true))
	if err != nil {
		return err
	}
	m := &markdown{}
	fmt.Fprintf(&m.text, "---\n%s---\n\n", meta)
	m.line("# %s", prose(c.title(reports)))
	c.introduction(m, reports[0])
	c.results(m, reports)
	c.usage(m, reports)
	c.making(m, reports)
	return m.writeTo(w)
}

func (c Card) title(reports []*Report) string {
	return cmp.Or(c.Title, Stem(main(reports[0].Result)))
}

// cardMetadata are the keys of the YAML block that the Hub reads:
// https://github.com/huggingface/hub-docs/blob/main/modelcard.md
type cardMetadata struct {
	BaseModel   string      `yaml:"base_model,omitempty"`
	Relation    string      `yaml:"base_model_relation,omitempty"`
	Library     string      `yaml:"library_name"`
	PipelineTag string      `yaml:"pipeline_tag,omitempty"`
	Tags        []string    `yaml:"tags"`
	Index       []cardModel `yaml:"model-index,omitempty"`
}

type cardModel struct {
	Name    string       `yaml:"name"`
	Results []cardResult `yaml:"results"`
}

type cardResult struct {
	Task    cardTask     `yaml:"task"`
	Dataset cardDataset  `yaml:"dataset"`
	Metrics []cardMetric `yaml:"metrics"`
}

type cardTask struct {
	Type string `yaml:"type"`
}

type cardDataset struct {
	Name     string            `yaml:"name"`
	Type     string            `yaml:"type"`
	Revision string            `yaml:"revision,omitempty"` // digest of the samples
	Args     map[string]string `yaml:"args,omitempty"`
}

type cardMetric struct {
	Type  string  `yaml:"type"`
	Value float64 `yaml:"value"`
	Name  string  `yaml:"name"`
}

func (c Card) metadata(reports []*Report) cardMetadata {
	m := cardMetadata{
		BaseModel:   c.BaseModel,
		Library:     cmp.Or(c.Library, "onnx"),
		PipelineTag: c.PipelineTag,
		Tags:        []string{"onnx", "mcompress"},
	}
	if c.BaseModel != "" {
		m.Relation = relation(reports)
	}
	for _, r := range reports {
		for _, name := range methodsOf(r) {
			if !slices.Contains(m.Tags, name) {
				m.Tags = append(m.Tags, name)
			}
		}
	}
	if results := c.evaluations(reports); len(results) > 0 {
		m.Index = []cardModel{{visible(c.title(reports)), results}}
	}
	return m
}

// relation is that of the results to their base model: quantized, or finetune if weights were trained only.
func relation(reports []*Report) string {
	for _, r := range reports {
		if len(r.Training) == 0 || slices.ContainsFunc(r.Ledger, func(row Row) bool {
			return row.Before != nil && row.After != nil && row.After.DType != row.Before.DType
		}) {
			return "quantized"
		}
	}
	return "finetune"
}

// methodsOf are those of the ledger that changed something, in order.
func methodsOf(r *Report) []string {
	var names []string
	for _, row := range r.Ledger {
		if row.Status == pass.Changed.String() && !slices.Contains(names, row.Method) {
			names = append(names, row.Method)
		}
	}
	return names
}

// evaluations are the results on each data set: those of the model, and of its worst output. Figures on random inputs
// are none.
func (c Card) evaluations(reports []*Report) []cardResult {
	var results []cardResult
	for _, r := range reports {
		v := r.Verification
		if v == nil || v.Data == nil || v.Data.Generated {
			continue
		}
		name := visible(samplesName(v.Data))
		d := cardDataset{Name: name, Type: name, Revision: v.Data.SHA256}
		i := slices.IndexFunc(
			results,
			func(x cardResult) bool { return x.Dataset.Name == d.Name && x.Dataset.Revision == d.Revision },
		)
		if i < 0 {
			i = len(results)
			results = append(results, cardResult{Task: cardTask{cmp.Or(c.PipelineTag, "other")}, Dataset: d})
		}
		worst := v.Worst()
		for _, q := range measured(v) {
			if q.Output == "" || q.Output == worst.Name {
				results[i].Metrics = append(
					results[i].Metrics,
					cardMetric{q.ID, *q.After, visible(q.Name + ", " + main(r.Result))},
				)
			}
		}
	}
	return slices.DeleteFunc(results, func(x cardResult) bool { return len(x.Metrics) == 0 })
}

func (c Card) introduction(m *markdown, r *Report) {
	source := "the model " + code(main(r.before()))
	if c.BaseModel != "" {
		source = "[" + prose(c.BaseModel) + "](https://huggingface.co/" + inline(c.BaseModel) + ")" // which Check has checked
	}
	m.line("Compressed from %s, in the format ONNX, with mcompress %s.", source, prose(r.Tool.Version))
}

// results writes a table of sizes and errors, the source first.
func (c Card) results(m *markdown, reports []*Report) {
	head := []inline{
		"file",
		"methods",
		"size:",
		"ratio:",
		"coverage:",
		"output SQNR:",
		"cosine:",
		"max abs error:",
		"top-1 agreement:",
		"accuracy:",
		"metric:",
		"gates",
	}
	if c.DTypes != nil {
		head = slices.Insert(head, 1, "dtype")
	}
	rows := [][]inline{c.sourceRow(reports[0])}
	for i, r := range reports {
		rows = append(rows, c.row(i, r))
	}
	m.line("## Results")
	m.table(withoutEmpty(head, rows))
	m.line(
		"Errors are of outputs, compared with those of the %s, on %s.",
		prose(reports[0].reference()),
		prose(reports[0].Verdict.Evidence),
	)
	if v := view(reports[0].Verification); v != nil && v.Caveat != "" {
		m.line("**%s**", prose(v.Caveat))
	}
}

func (c Card) sourceRow(r *Report) []inline {
	row := []inline{
		prose(r.reference()) + ": " + code(main(r.before())),
		"",
		prose(size(r.Totals.FileBytes.Before)),
		"",
		"",
		"",
		"",
		"",
		"",
		"",
		"",
		"",
	}
	if v := r.Verification; v != nil {
		if a := v.Accuracy; a != nil && a.Before != nil {
			row[9] = prose(agreement(a.Before))
		}
		if q := v.Metric; q != nil && q.Before != nil {
			row[10] = prose(fmt.Sprintf("%.5g", *q.Before))
		}
	}
	if c.DTypes != nil {
		row = slices.Insert(row, 1, "")
	}
	return row
}

func (c Card) row(i int, r *Report) []inline {
	t := r.Totals.FileBytes
	row := []inline{
		code(main(r.Result)),
		prose(strings.Join(methodsOf(r), ", ")),
		prose(size(t.After)),
		prose(times(ratio(t))),
		prose(percent(r.Coverage.Fraction)),
		"",
		"",
		"",
		"",
		"",
		"",
		"",
	}
	if v := r.Verification; v != nil {
		if o := v.Worst(); o != nil {
			if e := o.Errors; e != nil {
				row[5], row[6], row[7] = prose(e.Text()), prose(closeness(e)), prose(largestError(e))
			}
			row[8] = prose(agreement(o.Agreement))
		}
		if a := v.Accuracy; a != nil {
			row[9] = prose(agreement(&a.After))
		}
		if q := v.Metric; q != nil && q.After != nil {
			row[10] = prose(fmt.Sprintf("%s %.5g", q.Name, *q.After))
		}
	}
	if r.Verdict.Gates > 0 {
		row[11] = prose(r.Verdict.Text())
	}
	if c.DTypes != nil {
		row = slices.Insert(row, 1, code(c.DTypes[i]))
	}
	return row
}

// withoutEmpty leaves out columns without a cell.
func withoutEmpty(head []inline, rows [][]inline) ([]inline, [][]inline) {
	full := func(i int) bool { return slices.ContainsFunc(rows, func(r []inline) bool { return r[i] != "" }) }
	keep := func(cells []inline) []inline {
		var kept []inline
		for i, cell := range cells {
			if full(i) {
				kept = append(kept, cell)
			}
		}
		return kept
	}
	var out [][]inline
	for _, r := range rows {
		out = append(out, keep(r))
	}
	return keep(head), out
}

// usage shows how to run the first result.
func (c Card) usage(m *markdown, reports []*Report) {
	m.line("## Usage")
	name := c.file(main(reports[0].Result))
	if c.DTypes != nil && c.PipelineTag != "" {
		m.line("In JavaScript, with transformers.js and the name of this repository:")
		m.block(
			"js",
			fmt.Sprintf(
				"import { pipeline } from \"@huggingface/transformers\";\n\nconst run = await pipeline(%q, \"OWNER/NAME\", { "+
					"dtype: %q });",
				c.PipelineTag,
				c.DTypes[0],
			),
		)
	}
	m.line("In Python, with ONNX Runtime, on a dictionary of arrays by the names of inputs:")
	m.block(
		"python",
		fmt.Sprintf(
			"import onnxruntime\n\nsession = onnxruntime.InferenceSession(%s)\nprint([(i.name, i.type, i.shape) for i in "+
				"session.get_inputs()])\noutputs = session.run(None, inputs)",
			literal(name),
		),
	)
	for _, h := range reports[0].Hints {
		m.line("> **Note:** %s.", prose(h))
	}
}

// making lists recipes and digests.
func (c Card) making(m *markdown, reports []*Report) {
	m.line("## How it was made")
	files := [][]inline{}
	for _, f := range reports[0].Source.Files {
		files = append(files, []inline{"source", code(f.Name), prose(count(f.Bytes) + " bytes"), digest(f.SHA256)})
	}
	for _, r := range reports {
		for _, f := range r.Result.Files {
			files = append(files, []inline{"result", code(c.file(f.Name)), prose(count(f.Bytes) + " bytes"), digest(f.SHA256)})
		}
	}
	m.table([]inline{"", "file", "size:", "SHA-256"}, files)
	for _, r := range reports {
		if r.Recipe != nil {
			m.line(
				"Recipe of %s: `mcompress apply RECIPE.yaml MODEL` on the source writes the same bytes.",
				code(main(r.Result)),
			)
			m.block("yaml", r.Recipe.Text)
		}
	}
}

// file is the path of a file of a result in the repository.
func (c Card) file(name string) string {
	if c.Folder == "" {
		return name
	}
	return c.Folder + "/" + name
}

// literal is text as a string literal that Python reads as it is meant.
func literal(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(visible(text)) + `"`
}
