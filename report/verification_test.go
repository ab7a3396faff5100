package report

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/verification"
)

func num(x float64) *float64 { return &x }

// layered is a result for a model of n layers; the one in the middle breaks it.
func layered(layers int, name func(i int) string) *verification.Result {
	v := &verification.Result{
		Backend: "the embedded engine",
		Data:    &verification.Data{Samples: 8, Batch: 1, Generated: true, Seed: 3},
		Outputs: []verification.Output{
			{Name: "logits", Errors: &verification.Errors{SQNR: num(23.4), Cosine: num(0.9987), Max: num(0.25), Elements: 80},
				Agreement: num(0.875)},
			{Name: "mask", Errors: &verification.Errors{NonFinite: 2, SourceNonFinite: 1, Elements: 10, Max: num(0)}},
			{Name: "label", Agreement: num(1)},
		},
		Accuracy:    &verification.Accuracy{Before: num(0.99), After: 0.985},
		Activations: &verification.Activations{Before: 2048, After: 1024},
	}
	for i := range layers {
		e := verification.Errors{Exact: true, Elements: 4}
		if i > 0 {
			e = verification.Errors{SQNR: num(60 - float64(i%7)), Cosine: num(0.999999), Max: num(1e-3), Elements: 4}
		}
		if i == layers/2 {
			e.SQNR = num(12.5)
			v.Breaks = &verification.Break{Value: name(i), Node: "node " + name(i), Op: "MatMul", From: num(58), To: e.SQNR}
		}
		v.Layers = append(v.Layers, verification.Layer{Value: name(i), Node: "node " + name(i), Op: "MatMul", Errors: e})
	}
	return v
}

func verified(t *testing.T, v *verification.Result, gates ...Limit) *Report {
	t.Helper()
	return (&job{model: network(odd()), methods: []*pass.Method{rounding},
		in: Input{Errors: true, Verification: v, Gates: gates}}).build(t)
}

func TestVerificationKeepsTheSchemaAndTheDigest(t *testing.T) {
	r := verified(t, layered(3, node), Limit{"min-sqnr", 20}, Limit{"min-agreement", 0.5},
		Limit{"max-accuracy-drop", 0.01}, Limit{"min-cosine", 0.99})
	valid(t, r)
	valid(t, verified(t, &verification.Result{Skipped: "of the weather"}, Limit{"min-sqnr", 20}))
	var b bytes.Buffer
	if err := r.JSON(&b); err != nil {
		t.Fatal(err)
	}
	back, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if digest, err := back.digest(t.Context()); err != nil || digest != r.Digest {
		t.Errorf("read back, the digest is %s, %v; want %s", digest, err, r.Digest)
	}
	if a := back.Totals.Activations; a == nil || *a != (Change{2048, 1024}) || back.Verification.Activations != nil {
		t.Errorf("activations: %+v", a)
	}
}

func TestGatesOnVerification(t *testing.T) {
	scored := layered(3, node)
	scored.Outputs = scored.Outputs[:1]
	equal := &verification.Result{Outputs: []verification.Output{{Name: "y",
		Errors: &verification.Errors{Exact: true, Elements: 1}}}}
	for _, c := range []struct {
		v      *verification.Result
		limit  Limit
		held   bool
		value  *float64
		reason string
	}{
		{scored, Limit{"min-sqnr", 23.4}, true, num(23.4), ""},
		{scored, Limit{"min-sqnr", 23.5}, false, num(23.4), ""},
		{layered(3, node), Limit{"min-sqnr", 1}, false, nil, `output "mask": 2 of 10 elements are NaN or infinite`},
		{equal, Limit{"min-sqnr", 1e9}, true, nil, "the outputs are equal"},
		{equal, Limit{"min-cosine", 1}, true, num(1), ""},
		{equal, Limit{"min-agreement", 0}, false, nil, "no output holds classes or scores"},
		{scored, Limit{"max-accuracy-drop", 0.005}, true, num(0.005), ""},
		{scored, Limit{"max-accuracy-drop", 0.004}, false, num(0.005), ""},
		{equal, Limit{"max-accuracy-drop", 1}, false, nil, "accuracy needs samples with labels"},
		{&verification.Result{Skipped: "of the weather"}, Limit{"min-sqnr", 1}, false, nil,
			"the models were not run: of the weather"},
		{nil, Limit{"min-sqnr", 1}, false, nil, "the models were not run"},
	} {
		r := verified(t, c.v, c.limit)
		g := r.Gates[0]
		same := (g.Value == nil) == (c.value == nil) && (g.Value == nil || *g.Value == *c.value)
		if g.Held != c.held || r.Passed() != c.held || !same || !strings.Contains(g.Reason, c.reason) ||
			(g.Value == nil) != (g.Reason != "") {
			t.Errorf("%+v: got %+v, value %v", c.limit, g, g.Value)
		}
		valid(t, r)
	}
}

// What is only planned cannot be run yet: the gate is open, and neither held nor broken.
func TestGatesOfADryRunAreNotEvaluated(t *testing.T) {
	j := &job{model: network(odd()), methods: []*pass.Method{rounding}, in: Input{Gates: []Limit{{"min-sqnr", 20}}}}
	in := j.input(t)
	in.Result = Model{IR: j.rewritten, Planned: true, Files: in.Result.Files}
	r, err := Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if g := r.Gates[0]; !g.Open || g.Held || g.Value != nil || !r.Passed() {
		t.Errorf("got %+v", g)
	}
	valid(t, r)
}

func TestVerificationInMarkdown(t *testing.T) {
	for name, v := range map[string]*verification.Result{
		"verified.md": layered(5, node),
		"skipped.md":  {Skipped: "node \"x\" (my.Op): operator of opset 1 is not supported by the engine"},
	} {
		m := &markdown{}
		m.gates(verified(t, v, Limit{"min-sqnr", 20}).Gates)
		m.verification(v)
		golden(t, name, m.text.Bytes())
	}
}

func TestVerificationInHTML(t *testing.T) {
	page := html(t, verified(t, layered(5, node), Limit{"min-sqnr", 20}))
	for _, want := range []string{
		"Data: 8 random samples, seed 3. Run by the embedded engine.", "Accuracy 99 % → 98.5 % (-0.50 points).",
		"Largest drop: SQNR 58.0 dB → 12.5 dB at <code>node2</code>, output of MatMul <code>node node2</code>.",
		">2 of 10 elements differ<", "<h2>SQNR by layer</h2>", ">node4</text>", "<dt>Peak activations</dt>",
		"random inputs, which are no evidence of accuracy", "1.0 KiB",
		"<dt>Output SQNR</dt>\n    <dd class=\"big failed\">not finite</dd>",
		"<dt>Accuracy</dt>\n    <dd class=\"big\">98.5 %</dd>\n    <dd class=\"soft\">99 % before, -0.50 points</dd>",
		`<tr><td><code>min-sqnr</code></td><td class="n">output &#34;mask&#34;`,
		`<td class="failed"><b>✗</b> does not hold</td>`, "Failed on random inputs",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	skipped := html(t, verified(t, &verification.Result{Skipped: "<of> the weather"}))
	if !strings.Contains(skipped, "The models were not run: &lt;of&gt; the weather.") ||
		strings.Contains(skipped, "SQNR by layer") {
		t.Error("the page does not say why nothing was run, or shows layers")
	}
	if page := html(t, verified(t, nil)); strings.Contains(page, "Verification") {
		t.Error("a page has a section on a verification that was not requested")
	}
}

// Names come from models: what they hold is shown and not obeyed, in pages of any length.
func TestLayersWithHostileNames(t *testing.T) {
	for _, n := range []int{1, 2, maxNamed + 1, maxDots + 1} {
		page := html(t, verified(t, layered(n, func(int) string { return hostile })))
		for _, bad := range []string{"<script", "ZgotmplZ", "\u202e"} {
			if strings.Contains(page, bad) {
				t.Errorf("%d layers: the page contains %q", n, bad)
			}
		}
		if regexp.MustCompile(`(?s)<svg[^>]*>.*?(fill|stroke)[:=]"?#.*?</svg>`).MatchString(page) {
			t.Errorf("%d layers: a chart has colours of its own", n)
		}
	}
}

func TestSQNRLineHasGapsAtExactLayers(t *testing.T) {
	var ls []verification.Layer
	for _, db := range []float64{20, 30, math.Inf(1), 40, math.Inf(-1), math.NaN(), math.Inf(1)} {
		e := verification.Errors{Elements: 1}
		switch {
		case math.IsInf(db, 1):
			e.Exact = true
		case math.IsNaN(db):
			e.Elements = 0
		case !math.IsInf(db, -1):
			e.SQNR = &db
		}
		ls = append(ls, verification.Layer{Errors: e})
	}
	got := inexact(ls)
	if len(got) != 2 || len(got[0]) != 2 || len(got[1]) != 2 || got[1][1].Y != 0 || got[1][0].X != 3.5 {
		t.Errorf("got %v", got)
	}
}
