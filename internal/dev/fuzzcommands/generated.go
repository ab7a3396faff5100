package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/internal/dev/conform"
	"github.com/mcompress/mcompress/internal/dev/modelgen"
	"github.com/mcompress/mcompress/pass"
)

// A generated case is a generated model and a command, whose result is compared with ONNX Runtime's outputs of the
// model, with the figures of its report, and with the results of runs that must not differ.
type generatedCase struct {
	*testCase
	f      *fuzzer
	worker *conform.Worker
	model  *modelgen.Model

	target string
	recipe string // of the command; empty for none
	valid  error  // why onnx.checker refuses the model
	runs   error  // why ONNX Runtime does not run it
}

// data is the folder of the inputs of a generated model, next to it.
const data = "test_data_set_0"

// generate writes model number i and chooses a command.
func (f *fuzzer) generate(i int, dir string, w *conform.Worker) (*generatedCase, error) {
	c := &generatedCase{
		testCase: &testCase{number: i, dir: dir, random: rand.New(rand.NewPCG(f.seed, uint64(i)))},
		f:        f, worker: w,
		model: modelgen.New(f.seed<<32 + uint64(i)),
	}
	c.args = c.generatedCommand()
	return c, c.write()
}

// write writes the model, and finds what it may be compared with.
func (c *generatedCase) write() error {
	if err := c.place(c.testCase, c.model); err != nil {
		return err
	}
	c.valid = c.worker.Check(c.testCase.model(), !c.model.Sparse())
	_, c.runs = c.worker.Run(c.testCase.model(), conform.Options{Level: "none"})
	c.initial = c.entries()
	return nil
}

// place writes a model and the recipe into the folder of t.
func (c *generatedCase) place(t *testCase, m *modelgen.Model) error {
	err := m.Write(t.model())
	if c.recipe != "" {
		err = errors.Join(err, os.WriteFile(filepath.Join(t.dir, recipeName), []byte(c.recipe), 0o644))
	}
	return err
}

// generatedCommand is a command that writes out.onnx with a report, on the inputs of the model.
func (c *generatedCase) generatedCommand() []string {
	var args []string
	switch c.random.IntN(16) {
	case 0:
		args = []string{"quantize", "--auto", one(c.random, "--target-ratio=1.5", "--target-ratio=3", "--min-sqnr=20",
			"--min-sqnr=35")}
	case 1:
		args = []string{"apply", recipeName}
		c.recipe = c.steps()
	default:
		args = c.compression()
	}
	switch c.random.IntN(8) {
	case 0:
		if c.recipe == "" && c.method != nil {
			args = append(args, "--no-verify")
		}
	case 1:
		if args[0] == "prune" { // which writes what every runtime has
			break
		}
		c.target = one(c.random, "ort", "ort-1.17", "openvino", "web", "embedded")
		args = append(args, "--target", c.target)
	}
	return append(args, "--data", data, "--report", "json", "m.onnx", "-o", "out.onnx")
}

func one[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// recipeName is the recipe of a case, next to its model.
const recipeName = "recipe.yaml"

// steps are those of a recipe: a method that prunes or prepares the model, and one that quantizes it.
func (c *generatedCase) steps() string {
	first := one(c.random, "method: l1-global\n    amount: 0.6", "method: l1\n    amount: 0.5",
		"method: fold-batchnorm", "method: float16", "method: smooth", "method: nm", "method: channel\n    amount: 0.3")
	second := one(c.random, "method: weight-int8", "method: weight-int4\n    block: 16", "method: dynamic-int8",
		"method: static-int8", "method: palette", "method: weight-int2")
	return fmt.Sprintf("steps:\n  - %s\n  - %s\n", first, second)
}

// what names the kind of command.
func (c *generatedCase) what() string {
	switch {
	case c.method != nil:
		return c.method.Name
	case c.recipe != "":
		return "recipe"
	}
	return "auto"
}

// test runs the command and its variants, and sets the finding.
func (c *generatedCase) test(ctx context.Context) {
	c.run(ctx, c.f)
	if c.finding != "" || ctx.Err() != nil {
		return
	}
	if c.valid != nil {
		c.finding = fmt.Sprintf("the generator makes an invalid model: %v", c.valid)
		return
	}
	for _, property := range []func(context.Context) string{c.refusal, c.judged, c.figures, c.rows, c.repeated,
		c.interrupted, c.related, c.library, c.evidence, c.other, c.twice} {
		text := property(ctx)
		if notRun.MatchString(text) {
			continue
		}
		if c.finding = text; text != "" || ctx.Err() != nil {
			return
		}
	}
}

// refusal holds for runs with an exit code of its kind: the models are valid, so that no input is malformed.
func (c *generatedCase) refusal(context.Context) string {
	if c.code == 4 && c.runs == nil && !rightRefusals.MatchString(c.output) && c.model.Finite() {
		return "a valid model is refused: " + lastLine(c.output)
	}
	if c.code == 1 {
		return "an error of input or output: " + lastLine(c.output)
	}
	if c.code == 2 && strings.Contains(c.output, "unknown ") { // values of options may be wrong, their names not
		return "the generator makes no command: " + lastLine(c.output)
	}
	return ""
}

// rightRefusals are messages about valid models: methods that find nothing to work on, and a target below what they can
// do.
var rightRefusals = regexp.MustCompile(`--allow-unchanged copies it|--target-macs [0-9.]+: [0-9.]+ are left with one channel of each group`)

// notRun is the message about an operator that only methods without data, and other runtimes, support.
var notRun = regexp.MustCompile(`\((com\.microsoft\.)?\w+\): operator of opset \d+ is not supported by the engine`)

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// result is the path of the written model; empty if there is none.
func (c *generatedCase) result() string {
	for _, name := range []string{"out.onnx", "out.rejected.onnx"} {
		if path := filepath.Join(c.dir, name); c.code == 0 || c.code == 3 {
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	return ""
}

// figuresJSON are parts of a report.
type figuresJSON struct {
	Result struct {
		Files []struct {
			Name  string `json:"name"`
			Bytes int64  `json:"bytes"`
		} `json:"files"`
	} `json:"result"`
	Totals struct {
		FileBytes struct{ Before, After int64 } `json:"file_bytes"`
	} `json:"totals"`
	Weights      []weightJSON
	Verification *struct {
		Outputs []struct {
			Name   string
			Errors errorsJSON
		}
	}
}

type weightJSON struct {
	Tensor  string
	Scope   string
	Dtype   string
	Shape   []int64
	Changed bool
	Methods []string
	Forms   []string
	Bytes   struct{ Before, After int64 }
	Reason  struct{ Code, Detail string }
	Error   *errorsJSON
}

type errorsJSON struct {
	Exact bool
	SQNR  *float64 `json:"sqnr_db"`
}

func (c *generatedCase) report() (*figuresJSON, error) {
	name := strings.TrimSuffix(c.result(), ".onnx")
	text, err := os.ReadFile(strings.TrimSuffix(name, ".rejected") + ".report.json")
	if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile(name + ".report.json")
	}
	if err != nil {
		return nil, err
	}
	r := &figuresJSON{}
	return r, json.Unmarshal(text, r)
}

// judged holds for results that onnx.checker accepts, that ONNX Runtime loads with and without optimizations, and whose
// outputs have the error that the report states.
func (c *generatedCase) judged(context.Context) string {
	path := c.result()
	if path == "" {
		return ""
	}
	if err := c.worker.Check(path, !c.model.Sparse()); err != nil && !contrib(err) {
		return "onnx.checker refuses the result: " + err.Error()
	}
	if c.runs != nil || c.otherRuntime() {
		return ""
	}
	for _, level := range []string{"none", "all"} {
		outputs, err := c.worker.Compare(c.testCase.model(), path, conform.Options{Level: level})
		if err != nil && c.model.Discontinuous() && strings.HasPrefix(err.Error(), "compare: ValueError") {
			continue // of another size
		}
		if err != nil {
			if _, source := c.worker.Run(c.testCase.model(), conform.Options{Level: level}); source != nil {
				continue
			}
			return fmt.Sprintf("ONNX Runtime (optimizations: %s) does not run the result: %v", level, err)
		}
		// Without optimizations ONNX Runtime has no precise mode: pairs of 8-bit products saturate in 16 bits on CPUs
		// without VNNI.
		if level == "none" && rounds.MatchString(c.text()) {
			continue
		}
		if why := c.within(outputs, level); why != "" {
			return fmt.Sprintf("%s (optimizations: %s)", why, level)
		}
	}
	return ""
}

// rounds are commands that may round activations to 8 bits.
var rounds = regexp.MustCompile(`(static|dynamic)-int8|--auto`)

// contrib reports an error of onnx.checker about operators that are not ONNX's.
func contrib(err error) bool {
	return strings.Contains(err.Error(), "No opset import for domain 'com.microsoft")
}

// text is the command with its recipe.
func (c *generatedCase) text() string { return strings.Join(c.args, " ") + " " + c.recipe }

// otherRuntime reports that the result is for a runtime with types or operators that ONNX Runtime does not have.
func (c *generatedCase) otherRuntime() bool {
	text := c.text()
	return strings.Contains(text, "embedded") || strings.Contains(text, "openvino") ||
		strings.Contains(text, "--compute=bfloat16")
}

// within compares the errors of outputs at a level of optimization with those in the report.
func (c *generatedCase) within(outputs []conform.Output, level string) string {
	r, err := c.report()
	if err != nil {
		return "no report: " + err.Error()
	}
	if r.Verification == nil || c.model.Discontinuous() || !c.model.Finite() {
		return ""
	}
	for _, stated := range r.Verification.Outputs {
		for _, o := range outputs {
			if o.Name != stated.Name || stated.Errors.SQNR == nil && !stated.Errors.Exact {
				continue
			}
			if math.IsInf(float64(o.SQNR), -1) && o.MaxErr < 1e-5 {
				// the source gives zeros, and has no ratio: runtimes sum products and subtract zero points, which
				// leaves rounding errors
				continue
			}
			// Sums in another order differ by some bits.
			want := 60.0
			if stated.Errors.SQNR != nil {
				want = min(want, *stated.Errors.SQNR)
			}
			if got := float64(o.SQNR); got < want-6 && want > 0 && got < c.noise(o.Name, level)-6 {
				return fmt.Sprintf("output %s has %.1f dB in ONNX Runtime, the report states %.1f dB", o.Name, got,
					want)
			} else if want > 0 && want < 40 && got > want+10 { // below 0 dB outputs are rounding errors, such as sums that cancel, which two runtimes do not share
				return fmt.Sprintf("output %s has %.1f dB in ONNX Runtime, more than the report states: %.1f dB",
					o.Name, got, want)
			}
		}
	}
	return c.shallowBound(r, outputs)
}

// noise is the SQNR of an output of the source in ONNX Runtime at a level of optimization, compared with that without.
// A product whose weight is behind DequantizeLinear becomes MatMulNBits with activations of 8 bits, in the source as in
// the result, which round differently.
func (c *generatedCase) noise(output, level string) float64 {
	outputs, err := c.worker.Compare(c.testCase.model(), c.testCase.model(),
		conform.Options{Level: level, First: "none"})
	for _, o := range outputs {
		if err == nil && o.Name == output {
			return float64(o.SQNR)
		}
	}
	return math.Inf(1)
}

// shallowBound holds for one layer of one ordinary weight: the output has about the error of the weight.
func (c *generatedCase) shallowBound(r *figuresJSON, outputs []conform.Output) string {
	if !c.model.Ordinary() {
		return ""
	}
	lowest := 200.0
	for _, w := range r.Weights {
		if w.Changed && w.Error != nil && w.Error.SQNR != nil {
			lowest = min(lowest, *w.Error.SQNR)
		}
	}
	activations := 25.0 // of 8-bit activations
	if got := conform.LowestSQNR(outputs); got < min(lowest-10, activations) {
		return fmt.Sprintf("the output of one layer has %.1f dB, its weight %.1f dB", got, lowest)
	}
	return ""
}

// figures holds for sizes that are those of the files, and for results that are not larger.
func (c *generatedCase) figures(context.Context) string {
	if c.result() == "" {
		return ""
	}
	r, err := c.report()
	if err != nil {
		return "no report: " + err.Error()
	}
	files := map[string]int64{}
	for _, f := range r.Result.Files {
		files[f.Name] = f.Bytes
	}
	total := r.Totals.FileBytes.After
	if why := conform.Sizes(c.dir, files, total); why != "" {
		return why
	}
	allowed := int64(metadata)
	if c.model.External() {
		allowed += int64(len(c.model.Constants())) * (page + entry)
	}
	if (c.method == nil || c.method.Shrinks) && total > r.Totals.FileBytes.Before+allowed {
		return fmt.Sprintf("a result of %d bytes, the source has %d", total, r.Totals.FileBytes.Before)
	}
	return ""
}

// A result without smaller weights may be larger by entries with the digests of source and recipe, and, where the
// source has external data, by the alignment of all weights in such a file, and their entries.
const (
	metadata = 512
	page     = 4096
	entry    = 160
)

// rows holds if each constant has one row.
func (c *generatedCase) rows(context.Context) string {
	if c.result() == "" {
		return ""
	}
	r, err := c.report()
	if err != nil {
		return "no report: " + err.Error()
	}
	count := map[string]int{}
	for _, w := range r.Weights {
		// constants of the result that the source does not have, such as a bias that was folded, have rows, too
		count[w.Tensor]++
	}
	for _, name := range c.model.Constants() {
		if n := count[name]; n != 1 {
			return fmt.Sprintf("constant %s has %d rows", name, n)
		}
	}
	return ""
}

// repeated holds if another number of workers, another memory limit and other pieces give the same bytes.
func (c *generatedCase) repeated(ctx context.Context) string {
	if c.result() == "" || c.random.IntN(2) == 0 && !c.always {
		return ""
	}
	other, program := []string{"--workers", "5"}, ""
	switch c.random.IntN(3) {
	case 0:
		other = []string{"--workers", "1", "--memory-limit", "512MiB"}
	case 1:
		other, program = nil, c.f.pieces
	}
	again, dir, err := c.again(ctx, c.model, append(other, c.args...), program)
	if dir != "" {
		defer os.RemoveAll(dir)
	}
	if err != nil {
		return err.Error()
	}
	if program != "" {
		other = []string{"the invariants"}
	}
	if again.code != c.code {
		return fmt.Sprintf("exit code %d with %v: %s", again.code, other, lastLine(again.output))
	}
	for _, name := range c.written() {
		if strings.HasSuffix(name, ".environment.json") {
			continue
		}
		a, errA := os.ReadFile(filepath.Join(c.dir, name))
		b, errB := os.ReadFile(filepath.Join(dir, name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			return fmt.Sprintf("%s differs with %v: %v", name, other, errors.Join(errA, errB))
		}
	}
	return ""
}

// again runs a command on a model in a folder of its own.
func (c *generatedCase) again(ctx context.Context, m *modelgen.Model, args []string, program string) (*testCase,
	string, error) {
	dir, err := os.MkdirTemp("", "fuzzcommands")
	if err != nil {
		return nil, "", err
	}
	other := &testCase{dir: dir, args: args, program: program}
	return other, dir, c.runIn(ctx, other, m)
}

// runIn runs other on a model, in its folder.
func (c *generatedCase) runIn(ctx context.Context, other *testCase, m *modelgen.Model) error {
	if err := c.place(other, m); err != nil {
		return err
	}
	other.initial = other.entries()
	other.run(ctx, c.f)
	return nil
}

// interrupted holds if the command ends soon after an interrupt, leaves nothing, and says so.
func (c *generatedCase) interrupted(ctx context.Context) string {
	if c.random.IntN(4) > 0 && !c.always {
		return ""
	}
	dir, err := os.MkdirTemp("", "fuzzcommands")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	again := &testCase{dir: dir, args: c.args, interrupt: time.Duration(float64(c.took) * c.random.Float64())}
	if err := c.runIn(ctx, again, c.model); err != nil {
		return err.Error()
	}
	switch {
	case again.finding != "":
		return "after an interrupt: " + again.finding
	case again.code == 1 && !strings.Contains(again.output, "interrupted"), again.code != 1 && again.code != c.code &&
		again.code >= 0:
		return fmt.Sprintf("exit code %d after an interrupt: %s", again.code, lastLine(again.output))
	}
	return ""
}

// written are the files that the run left.
func (c *generatedCase) written() []string {
	var names []string
	for name := range c.entries() {
		if !c.initial[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// library holds if the library writes the bytes of the program.
func (c *generatedCase) library(ctx context.Context) (finding string) {
	if c.code != 0 || c.method == nil || c.random.IntN(3) > 0 && !c.always {
		return ""
	}
	step, err := pass.NewStep(c.method, pass.Assignments(c.words))
	if err != nil {
		return "the library refuses the options: " + err.Error()
	}
	defer func() {
		if r := recover(); r != nil {
			finding = fmt.Sprintf("the library panics: %v", r)
		}
	}()
	out := filepath.Join(c.dir, "library", "out.onnx")
	if err := os.Mkdir(filepath.Dir(out), 0o755); err != nil {
		return err.Error()
	}
	r := mcompress.Request{
		Models: []string{c.testCase.model()}, Output: out, Steps: []mcompress.Step{step},
		Data:    mcompress.Data{Path: filepath.Join(c.dir, data)},
		Reports: mcompress.Reports{Formats: []string{"json"}},
	}
	r.Verification.Skip = slices.Contains(c.args, "--no-verify")
	if slices.Contains(c.args, "--target") {
		r.Target = c.target
	}
	if _, err := r.Run(ctx); err != nil {
		return "the library refuses what the program accepts: " + err.Error()
	}
	program, errA := os.ReadFile(c.testCase.out())
	library, errB := os.ReadFile(out)
	if errA != nil || errB != nil || !bytes.Equal(program, library) {
		return fmt.Sprintf("the library writes another model than the program: %v", errors.Join(errA, errB))
	}
	return ""
}

// related holds if an equivalent model gives the same ledger, and outputs of the same error.
func (c *generatedCase) related(ctx context.Context) string {
	if c.result() == "" || c.random.IntN(2) == 0 && !c.always {
		return ""
	}
	if c.random.IntN(8) == 0 {
		return c.packed(ctx)
	}
	relation, m := modelgen.Relate(c.random, c.model)
	if m == nil {
		return ""
	}
	other, dir, err := c.again(ctx, m, c.args, "")
	if dir != "" {
		defer os.RemoveAll(dir)
	}
	if err != nil {
		return err.Error()
	}
	if err := c.worker.Check(other.model(), !m.Sparse()); err != nil {
		return fmt.Sprintf("the relation %q makes an invalid model: %v", relation, err)
	}
	if other.code != c.code {
		return fmt.Sprintf("relation %q: exit code %d: %s", relation, other.code, lastLine(other.output))
	}
	o := &generatedCase{testCase: other, f: c.f, worker: c.worker, model: m}
	before, errA := c.report()
	after, errB := o.report()
	if errA != nil || errB != nil {
		return fmt.Sprintf("relation %q: no report: %v", relation, errors.Join(errA, errB))
	}
	if c.method == nil && c.recipe == "" {
		return "" // --auto measures outputs, whose last bits decide between equally good candidates
	}
	if before.nearlySmaller(o.model) || after.nearlySmaller(o.model) {
		return "" // where constants are decides whether the file becomes smaller
	}
	if a, b := before.ledger(), after.ledger(); !maps.Equal(a, b) {
		return fmt.Sprintf("relation %q: another ledger: %s", relation, difference(a, b))
	}
	if c.runs != nil || c.otherRuntime() || c.model.Discontinuous() || !c.model.Finite() || c.chosen(relation) {
		return ""
	}
	outputs, err := c.worker.Compare(c.result(), o.result(), conform.Options{Level: "none", Inputs: c.inputs()})
	if err != nil {
		if _, source := c.worker.Run(other.model(), conform.Options{Level: "none"}); source != nil {
			return "" // ONNX Runtime lacks an operator of the related model, such as one of a later opset
		}
		return fmt.Sprintf("relation %q: %v", relation, err)
	}
	if got := conform.LowestSQNR(outputs); got < 60 {
		return fmt.Sprintf("relation %q: the outputs differ by %.1f dB", relation, got)
	}
	return ""
}

// chosen reports that weights depend on more than their values and a relation keeps: on random numbers by name, or on
// measured outputs, whose last bits depend on the order of nodes and on outputs in between, which decide between
// equally good weights.
func (c *generatedCase) chosen(relation string) bool {
	named := strings.Contains(c.text(), "random") && relation == "renamed values"
	sums := relation == "reordered nodes" || relation == "one more output"
	return named || sums && (c.method == nil || c.method.Calibrates || strings.Contains(c.text(), "--algo="))
}

// evidence holds if the report of a result is that of the result, and if its recipe gives the result again.
func (c *generatedCase) evidence(ctx context.Context) string {
	if c.code != 0 || c.random.IntN(4) > 0 && !c.always {
		return ""
	}
	for _, args := range [][]string{{"verify-report", "out.onnx"}, {"reproduce", "out.report.json", "m.onnx"}} {
		step := &testCase{dir: c.dir, args: args, initial: c.entries()}
		if step.run(ctx, c.f); step.code != 0 || step.finding != "" {
			return fmt.Sprintf("%s: exit code %d: %s %s", args[0], step.code, lastLine(step.output), step.finding)
		}
	}
	return ""
}

// others are commands that do not compress, which run on every valid model that ONNX Runtime runs.
var others = [][]string{
	{"inspect", "--json", "m.onnx"}, {"inspect", "--values", "m.onnx"}, {"memory", "m.onnx"},
	{"bench", "--runs", "1", "m.onnx"},
	{"verify", "--data", data, "m.onnx", "out.onnx"}, {"verify", "--samples", "1", "m.onnx", "m.onnx"},
	{"report", "m.onnx", "out.onnx"},
	{"split", "m.onnx", "-n", "2", "-o", "parts"}, {"quantize", "--sensitivity", "--data", data, "m.onnx"},
	{"quantize", "--variants", "q8,fp16,q4", "-o", "variants/", "m.onnx"},
}

// other holds if another command runs on the model, and the models that it writes are valid.
func (c *generatedCase) other(ctx context.Context) string {
	if c.runs != nil || c.result() == "" || !c.model.Finite() || c.random.IntN(2) == 0 && !c.always {
		return ""
	}
	args := slices.Clone(one(c.random, others...))
	if c.result() != c.testCase.out() && slices.Contains(args, "out.onnx") {
		return ""
	}
	step := &testCase{dir: c.dir, args: args, initial: c.entries()}
	step.run(ctx, c.f)
	partly := step.code == 4 && slices.Contains(args, "--variants") // those that are possible are written
	if !partly && !c.sized(step) && (step.finding != "" || step.code != 0 && step.code != 3 &&
		!refusedOther.MatchString(step.output)) {
		return fmt.Sprintf("%s: exit code %d: %s %s", strings.Join(args[:2], " "), step.code, lastLine(step.output),
			step.finding)
	}
	for _, path := range slices.Concat(globbed(c.dir, "[pv]a*/*.onnx"), globbed(c.dir, "variants/onnx/*.onnx")) {
		if err := c.worker.Check(path, !c.model.Sparse()); err != nil && !contrib(err) {
			return fmt.Sprintf("%s: onnx.checker refuses %s: %v", strings.Join(args[:2], " "), filepath.Base(path), err)
		}
	}
	return ""
}

// sized reports whether a command refuses a model on inputs of sizes that it chooses for open axes, and ONNX Runtime
// does, too: constants fit to the sizes of the data.
func (c *generatedCase) sized(step *testCase) bool {
	if step.code != 4 || !c.model.OpenSizes() || slices.Contains(step.args, "--data") {
		return false
	}
	_, err := c.worker.Run(c.testCase.model(), conform.Options{Random: true, Level: "none"})
	return err != nil
}

func globbed(dir, pattern string) []string {
	list, _ := filepath.Glob(filepath.Join(dir, pattern)) // the patterns are right
	return list
}

// refusedOther are messages about what models lack, or do not need: too few nodes to divide, weights to quantize, or
// opsets of a variant.
var refusedOther = regexp.MustCompile(`cannot be (partitioned|divided|split)|no (point|place|cut)|--allow-unchanged copies it|no weights|fewer than|stages`)

// twice holds if the result is a model like any other: a second command accepts it, and writes a valid model that runs.
func (c *generatedCase) twice(ctx context.Context) string {
	if c.code != 0 || c.runs != nil || c.otherRuntime() || !c.model.Finite() || c.random.IntN(2) == 0 && !c.always {
		return ""
	}
	again := &testCase{dir: c.dir, random: c.random, initial: c.entries()}
	again.args = append(again.compression(), "--data", data, "--report", "none", "out.onnx", "-o", "twice.onnx")
	if again.run(ctx, c.f); again.finding != "" {
		return fmt.Sprintf("%s of the result: %s", again.method.Name, again.finding)
	}
	if again.code == 1 || again.code == 4 && !rightRefusals.MatchString(again.output) {
		return fmt.Sprintf("%s of the result: exit code %d: %s", again.method.Name, again.code, lastLine(again.output))
	}
	path := filepath.Join(c.dir, "twice.onnx")
	if _, err := os.Stat(path); err != nil || strings.Contains(strings.Join(again.args, " "), "--compute=bfloat16") ||
		again.method.Name == "float4" {
		return ""
	}
	if err := c.worker.Check(path, !c.model.Sparse()); err != nil && !contrib(err) {
		return fmt.Sprintf("%s of the result: onnx.checker refuses it: %v", again.method.Name, err)
	}
	optimized := conform.Options{Level: "all", Inputs: c.inputs()}
	if _, err := c.worker.Run(path, optimized); err != nil {
		if _, before := c.worker.Run(filepath.Join(c.dir, "out.onnx"), optimized); before != nil {
			return ""
		}
		return fmt.Sprintf("%s of the result: ONNX Runtime does not run it: %v", again.method.Name, err)
	}
	return ""
}

// packed holds if a copy that was packed and unpacked is the model, and so gives the same result.
func (c *generatedCase) packed(ctx context.Context) string {
	dir, err := os.MkdirTemp("", "fuzzcommands")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	copied := filepath.Join(dir, "m.onnx")
	for _, args := range [][]string{{"pack", "m.onnx", "-o", filepath.Join(dir, "m.mcz")},
		{"unpack", filepath.Join(dir, "m.mcz"), "-o", copied}} {
		step := &testCase{dir: c.dir, args: args}
		if step.run(ctx, c.f); step.code != 0 {
			return fmt.Sprintf("%s: exit code %d: %s", args[0], step.code, lastLine(step.output))
		}
	}
	if err := c.worker.Equal(c.testCase.model(), copied); err != nil {
		return "the model differs after pack and unpack: " + err.Error()
	}
	return ""
}

func (c *generatedCase) inputs() []string {
	var paths []string
	for i := range c.model.Inputs {
		paths = append(paths, filepath.Join(c.dir, data, fmt.Sprintf("input_%d.pb", i)))
	}
	return paths
}

// nearlySmaller reports that nothing changed since the file would become larger, by no more than what external data
// takes.
func (r *figuresJSON) nearlySmaller(m *modelgen.Model) bool {
	return slices.ContainsFunc(r.Weights, func(w weightJSON) bool {
		var from, to int64
		n, err := fmt.Sscanf(w.Reason.Detail, "%d bytes → %d bytes", &from, &to)
		return w.Reason.Code == "file-larger" && err == nil && n == 2 && to-from < page+int64(len(m.Constants()))*entry
	})
}

// ledger counts the rows of large weights by what they say, without names: small ones are constants of the structure,
// which relations add.
func (r *figuresJSON) ledger() map[string]int {
	rows := map[string]int{}
	for _, w := range r.Weights {
		n := int64(1)
		for _, d := range w.Shape {
			n *= d
		}
		if n < 64 {
			continue
		}
		kind := fmt.Sprintf("%v %v %v", w.Methods, w.Forms, w.Reason.Code)
		rows[fmt.Sprintf("%s %s of %d elements", w.Dtype, kind, n)]++
		// what weights share, such as tables, is counted for the first one, which another order changes
		rows[kind+", bytes"] += int(w.Bytes.After)
	}
	return rows
}

func difference(a, b map[string]int) string {
	var list []string
	for row := range a {
		if a[row] != b[row] {
			list = append(list, fmt.Sprintf("%d × %s, then %d", a[row], row, b[row]))
		}
	}
	for row := range b {
		if a[row] == 0 {
			list = append(list, fmt.Sprintf("0 × %s, then %d", row, b[row]))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "; ")
}

var (
	names   = regexp.MustCompile(`"[^"]*"|[A-Za-z]+_\d+`)
	numbers = regexp.MustCompile(`-?\d+(\.\d+)?`)
)

// kind is a finding without names and numbers.
func kind(finding string) string {
	k := numbers.ReplaceAllString(names.ReplaceAllString(finding, "X"), "N")
	return k[:min(len(k), 150)]
}
