package report

import (
	"bytes"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/verification"
)

// evaluated is a verification on samples from a file of the given name.
func evaluated(name string) *verification.Result {
	v := layered(3, node)
	v.Data = &verification.Data{Name: name, Samples: 500, Batch: 16,
		SHA256: "5a5d" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ab"}
	v.Metric = &verification.Metric{Name: "f1:average=macro", Before: num(0.95), After: num(0.925), HigherIsBetter: true}
	return v
}

// cards are the cards of the golden files.
func cards(t *testing.T) map[string]func() (Card, []*Report) {
	build := func(w string, methods []*pass.Method, v *verification.Result) *Report {
		return (&job{model: network(weight(w, []int64{2, 2}, 0, 1.5, -2.25, 4)), methods: methods, in: Input{
			Errors: true, Verification: v, Tool: "mcompress", Version: "v1.2.3",
			Recipe: &Recipe{SHA256: "ab", Text: "steps:\n- rounding: {}\n"},
		}}).build(t)
	}
	return map[string]func() (Card, []*Report){
		"card.md": func() (Card, []*Report) {
			return Card{BaseModel: "owner/model", PipelineTag: "image-classification"},
				[]*Report{build("w", []*pass.Method{rounding}, evaluated("digits_test.npz"))}
		},
		"card-random.md": func() (Card, []*Report) {
			return Card{}, []*Report{build("w", []*pass.Method{rounding}, layered(3, node))}
		},
		"card-variants.md": func() (Card, []*Report) {
			return Card{BaseModel: "owner/model", PipelineTag: "text-classification", Library: "transformers.js", Title: "model",
					Folder: "onnx", DTypes: []string{"q8", "fp16"}}, []*Report{
					build("w", []*pass.Method{rounding}, evaluated("digits_test.npz")),
					build("w", []*pass.Method{halving}, evaluated("digits_test.npz")),
				}
		},
		"card-hostile.md": func() (Card, []*Report) {
			v := evaluated(hostile + "\n---\n: {}")
			v.Outputs[0].Name = hostile
			v.Metric.Name = "'x\": [*a, &b]\n# "
			r := build("w", []*pass.Method{rounding}, v)
			r.Result.Files[0].Name, r.Source.Files[0].Name, r.Tool.Version, r.Recipe.Text = hostile+"\n---\n.onnx", hostile,
				"<b>", "```\n---\n# x\n"
			r.Hints = []string{hostile}
			return Card{Title: "- [x]: " + hostile + "\n---\n"}, []*Report{r}
		},
	}
}

// The Hub's own library reads every card, and finds the figures in it.
func TestCard(t *testing.T) {
	for name, of := range cards(t) {
		t.Run(name, func(t *testing.T) {
			card, reports := of()
			var b bytes.Buffer
			if err := card.Write(&b, reports...); err != nil {
				t.Fatal(err)
			}
			golden(t, name, b.Bytes())
			got, err := conform.Start(t).ModelCard(b.String())
			if err != nil {
				t.Fatal(err)
			}
			if got.BaseModel != card.BaseModel || got.PipelineTag != card.PipelineTag ||
				(got.Relation == "quantized") != (card.BaseModel != "") {
				t.Errorf("read as %+v", got)
			}
			if want := len(card.evaluations(reports)) > 0; want != (len(got.Results) > 0) {
				t.Errorf("results: %+v", got.Results)
			}
			for _, r := range got.Results {
				if r.Metric == "accuracy" && r.Value != 0.985 || r.Metric == "f1" && r.Value != 0.925 {
					t.Errorf("read as %+v", r)
				}
			}
		})
	}
}

// A model that was trained only is a fine-tuned one.
func TestRelationToTheBaseModel(t *testing.T) {
	trained := []pass.Training{{Method: "finetune", Steps: 1}}
	same := func(dtype string) []Row {
		return []Row{{Before: &Stored{DType: "float"}, After: &Made{DType: dtype}}, {}}
	}
	for want, reports := range map[string][]*Report{
		"finetune":  {{Training: trained, Ledger: same("float")}},
		"quantized": {{Training: trained, Ledger: same("float")}, {Training: trained, Ledger: same("int8")}},
	} {
		if got := relation(reports); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := relation([]*Report{{Ledger: same("float")}}); got != "quantized" {
		t.Errorf("without training: got %s", got)
	}
}

func TestCardOfNamesThatTheHubCannotHave(t *testing.T) {
	for _, c := range []Card{{BaseModel: "a/b/c"}, {BaseModel: "../x"}, {BaseModel: "a b"}, {BaseModel: "x\ny"},
		{BaseModel: "https://example.org/x"}, {PipelineTag: "Image Classification"}, {PipelineTag: "x\ny"}} {
		if err := c.Check(); err == nil {
			t.Errorf("%+v: no error", c)
		}
		if err := c.Write(&bytes.Buffer{}, &Report{}); err == nil {
			t.Errorf("%+v was written", c)
		}
	}
	if err := (Card{BaseModel: "bert-base_1.0", PipelineTag: "fill-mask"}).Check(); err != nil {
		t.Error(err)
	}
}
