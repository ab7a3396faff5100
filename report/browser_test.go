package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report/verification"
)

const injection = `<img src=x onerror=alert(1)><script>document.title="broken"</script>"'&`

// samplePages are pages of every kind: verdicts, many weights, names with markup.
func samplePages(t *testing.T) map[string]func(io.Writer) error {
	t.Helper()
	build := func(m *ir.Model, v *verification.Result, gates ...Limit) *Report {
		j := job{model: m, methods: []*pass.Method{halving, rounding},
			in: Input{Errors: true, Verification: v, Gates: gates, Environment: Observe(2)()}}
		return j.build(t)
	}
	measured := layered(40, node)
	measured.Latency = &verification.Latency{Before: 0.002, After: 0.003, Runs: 9}
	named := layered(12, func(i int) string { return fmt.Sprint(injection, i) })
	hostile := build(network(weight(injection, []int64{2, 2}, 0, 1, 2, 3.5)), named, Limit{"min-sqnr", 20})
	hostile.Search = chosen()
	hostile.Training = []pass.Training{{Method: injection, Loss: []pass.Point{{Step: 1, Y: 2}, {Step: 2, Y: 1}}, Steps: 2,
		Samples: 9, TrainingMemory: pass.TrainingMemory{Why: []string{injection}}}}
	hostile.Recipe.Text = injection
	memory := nodesOf(t, 12, 5, func(i int) string { return injection })
	memory.Model = injection
	return map[string]func(io.Writer) error{
		"passed": build(many(), layered(2, node), Limit{"min-ratio", 1}).HTML,
		"failed": build(wide(20), measured, Limit{"max-latency-ratio", 1.2}, Limit{"min-cosine", 0.999},
			Limit{"require-coverage", 0.5}).HTML,
		"no gates": build(many(), nil).HTML,
		"random":   build(many(), layered(2, node), Limit{"min-agreement", 0}).HTML,
		"hostile":  hostile.HTML,
		"memory":   memory.HTML,
		"runs":     runsOf(t, []int64{2000, 3000, 1500}, []float64{20, 30, 10}, nil).HTML,
		"index":    indexOf(t, 60).HTML,
	}
}

// wide is a model of n weights in modules.
func wide(n int) *ir.Model {
	var ws []*ir.Tensor
	for i := range n {
		ws = append(ws, weight(fmt.Sprintf("encoder.layer.%d.attention.dense_%d.weight", i/8, i%8), []int64{2, 2}, 0, 1,
			1+0.003*float32(i%100), -3))
	}
	return network(ws...)
}

func TestInABrowser(t *testing.T) {
	b := openBrowser(t)
	for name, test := range map[string]func(*testing.T, *browser){
		"pages": pagesInABrowser, "policy": policyRefusesEverythingElse, "keyboard": tablesAreUsedByKeyboard,
		"no scripts": pageWithoutScripts, "long table": longTableIsFilteredAndSorted,
	} {
		t.Run(name, func(t *testing.T) { test(t, &browser{t, b.session}) })
	}
}

// Pages have no errors, violate no policy, execute no name, and are accessible, on screens and phones in both color
// schemes.
func pagesInABrowser(t *testing.T, b *browser) {
	for name, page := range samplePages(t) {
		t.Run(name, func(t *testing.T) {
			b := &browser{t, b.session}
			b.open(page)
			for _, screen := range []struct {
				width  int
				scheme string
			}{{1200, "light"}, {360, "dark"}} {
				b.show(screen.width, screen.scheme)
				b.eval(`for (const d of document.querySelectorAll("details")) d.open = true`, nil)
				var across int
				if b.eval(`return document.documentElement.scrollWidth`, &across); across > screen.width {
					t.Errorf("%d pixels: the page is %d wide", screen.width, across)
				}
				for _, v := range b.violations() {
					t.Errorf("%d pixels, %s: %s", screen.width, screen.scheme, v)
				}
				b.screenshot(fmt.Sprintf("%s-%d-%s", strings.ReplaceAll(name, " ", "-"), screen.width, screen.scheme))
			}
			for _, m := range b.console() {
				t.Error(m)
			}
			var images int
			var title string
			b.eval(`return document.images.length`, &images)
			b.eval(`return document.title`, &title)
			if _, err := b.request("GET", "/alert/text", nil); images > 0 || title == "broken" || err == nil {
				t.Errorf("a name was executed: %d images, title %q, alert %v", images, title, err == nil)
			}
		})
	}
}

// The policy refuses scripts, styles and images that are not the page's own.
func policyRefusesEverythingElse(t *testing.T, b *browser) {
	b.open(samplePages(t)["passed"])
	b.eval(`const s = document.createElement("script"); s.textContent = "document.title = 'broken'"; document.body.append(s);
		document.body.insertAdjacentHTML("beforeend", "<p id=p style='color: red' onclick='document.title=1'>x</p><img src='file:///x.png'>"); document.getElementById("p").click()`, nil)
	var title string
	if b.eval(`return document.title`, &title); title == "broken" || title == "1" {
		t.Error("a foreign script ran")
	}
	if refused := len(b.console()); refused < 4 {
		t.Errorf("%d violations were reported, want those of a script, a handler, a style and an image", refused)
	}
}

// Tables are sorted and filtered, and the tree is opened, by keyboard alone.
func tablesAreUsedByKeyboard(t *testing.T, b *browser) {
	b.open((&job{model: wide(320), methods: []*pass.Method{rounding}, in: Input{Errors: true}}).build(t).HTML)
	focus := func(text string) {
		t.Helper()
		for range 400 {
			b.keys(keyTab)
			var at string
			if b.eval(`return document.activeElement.matches("button, input") ? (document.activeElement.closest("label") || document.activeElement).innerText : ""`, &at); strings.HasPrefix(at, text) {
				return
			}
		}
		t.Fatalf("%q is not reached by Tab", text)
	}
	b.eval(`document.querySelector("#tree details").open = false`, nil)
	focus("Expand or collapse all")
	b.keys(keyEnter)
	var closed int
	if b.eval(`return document.querySelectorAll("#tree details:not([open])").length`, &closed); closed > 0 {
		t.Errorf("%d branches are closed after all were expanded", closed)
	}
	b.keys(keyEnter)

	focus("Filter")
	b.keys("layer.7. DENSE_3")
	var shown []string
	b.eval(`return [...document.querySelectorAll("#weights tbody tr:not([hidden]) td:first-child")].map((td) => td.firstChild.textContent)`, &shown)
	if want := []string{"encoder.layer.7.attention.dense_3.weight"}; !slices.Equal(shown, want) {
		t.Errorf("shown after the filter: %q, want %q", shown, want)
	}
	var status string
	if b.eval(`return document.querySelector(".filter output").value`, &status); status != "1 of 320 shown" {
		t.Errorf("status %q", status)
	}
	b.eval(`const i = document.querySelector(".filter input"); i.value = ""; i.dispatchEvent(new Event("input"))`, nil)

	column := func() (names []string) {
		b.eval(`return [...document.querySelectorAll("#weights tbody tr td:first-child")].map((td) => td.firstChild.textContent)`, &names)
		return names
	}
	focus("Weight")
	b.keys(keyEnter)
	up := column()
	if at := slices.Index(up, "encoder.layer.10.attention.dense_0.weight"); at != 80 {
		t.Errorf("layer 10 is row %d by name, want 80, after layer 9", at)
	}
	b.keys(keyEnter)
	if down := column(); down[len(down)-1] != up[0] {
		t.Errorf("the last row is %q, want %q", down[len(down)-1], up[0])
	}
	var sorted []string
	if b.eval(`return [...document.querySelectorAll("#weights th[aria-sort]")].map((th) => th.innerText + th.ariaSort)`,
		&sorted); len(sorted) != 1 || !strings.HasPrefix(sorted[0], "Weight") || !strings.HasSuffix(sorted[0], "descending") {
		t.Errorf("sorted columns: %q", sorted)
	}

	focus("Max abs error")
	b.keys(keyEnter)
	var errors []float64
	if b.eval(`return [...document.querySelectorAll("#weights tbody tr td:last-child")].map((td) => parseFloat(td.textContent)).filter((x) => !Number.isNaN(x))`, &errors); !slices.IsSorted(errors) || len(errors) < 300 {
		t.Errorf("the %d errors are not in order", len(errors))
	}
}

// Without scripts pages are complete and have no controls that do nothing.
func pageWithoutScripts(t *testing.T, b *browser) {
	b.tools("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	b.open((&job{model: wide(320), methods: []*pass.Method{rounding}, in: Input{Errors: true}}).build(t).HTML)
	// only new pages have scripts again
	b.tools("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil)
	var rows, controls int
	b.eval(`return document.querySelectorAll("#weights tbody tr").length`, &rows)
	b.eval(`return [...document.querySelectorAll("button, input")].filter((e) => e.checkVisibility()).length`, &controls)
	if rows < 320 || controls != 0 {
		t.Errorf("%d rows and %d controls, want all rows and no control", rows, controls)
	}
}

// The rows of a long table that are outside of the window are filtered and sorted, too; columns have one width in all
// rows, and links lead to pages.
func longTableIsFilteredAndSorted(t *testing.T, b *browser) {
	b.show(1200, "light")
	b.open(indexOf(t, 3000).HTML)
	var shown []string
	b.eval(`const i = document.querySelector(".filter input"); i.value = "MODEL-02999"; i.dispatchEvent(new Event("input"));
		return [...document.querySelectorAll("#models tbody tr")].filter((r) => r.checkVisibility()).map((r) => r.cells[0].querySelector("a").href.replace(/.*[/]/, ""))`, &shown)
	if want := []string{"model-02999.dynamic-int8.report.html"}; !slices.Equal(shown, want) {
		t.Errorf("shown after the filter: %q, want %q", shown, want)
	}
	var ratios []float64
	b.eval(`const i = document.querySelector(".filter input"); i.value = ""; i.dispatchEvent(new Event("input"));
		[...document.querySelectorAll("#models th button")].find((b) => b.textContent === "Ratio").click();
		return [...document.querySelectorAll("#models tbody tr")].map((r) => parseFloat(r.cells[4].textContent)).filter((x) => !Number.isNaN(x))`, &ratios)
	if !slices.IsSorted(ratios) || len(ratios) < 3000 {
		t.Errorf("the %d ratios are not in order", len(ratios))
	}
	var edges []float64
	b.eval(`const t = document.getElementById("models"); t.scrollIntoView();
		return [t.tHead.rows[0], ...[...t.tBodies[0].rows].slice(0, 5)].map((r) => r.cells[6].getBoundingClientRect().right)`, &edges)
	if slices.Max(edges)-slices.Min(edges) > 0.5 {
		t.Errorf("a column ends at %v", edges)
	}
}
