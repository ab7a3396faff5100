package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/rhysd/actionlint"
)

// A step is one of an action or of a job of a workflow.
type step struct {
	Name, ID, If, Uses, Shell, Run string
	Env, With                      map[string]string
}

// A runner runs steps as GitHub's runner does, in a folder of its own: expressions are evaluated, and the files of commands (GITHUB_PATH and
// others) are read after each step.
type runner struct {
	t        *testing.T
	dir      string            // working folder of the job
	files    map[string]string // GITHUB_OUTPUT and others
	contexts map[string]any    // inputs, github, steps
	path     string
	failed   bool
	log      strings.Builder
	used     []step // steps of other actions, with evaluated inputs
}

func newRunner(t *testing.T) *runner {
	r := &runner{t: t, dir: t.TempDir(), files: map[string]string{}, path: os.Getenv("PATH")}
	commands := t.TempDir()
	for _, name := range []string{"GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"} {
		r.files[name] = filepath.Join(commands, name)
		write(t, r.files[name], nil, 0o644)
	}
	r.contexts = map[string]any{"steps": map[string]any{}, "github": map[string]any{"action_ref": tag}}
	return r
}

// action runs the steps of an action with inputs, and returns its outputs.
func (r *runner) action(path string, inputs map[string]string) map[string]string {
	r.t.Helper()
	var a struct {
		Inputs map[string]struct {
			Default  string
			Required bool
		}
		Outputs map[string]struct{ Value string }
		Runs    struct {
			Using string
			Steps []step
		}
	}
	if err := yaml.Unmarshal(read(r.t, path), &a); err != nil || a.Runs.Using != "composite" {
		r.t.Fatalf("%v: %+v", err, a)
	}
	values := map[string]any{}
	for name, in := range a.Inputs {
		values[name] = in.Default
		if _, given := inputs[name]; in.Required && !given {
			r.t.Fatalf("input %s is required", name)
		}
	}
	for name, value := range inputs {
		if _, ok := values[name]; !ok {
			r.t.Fatalf("there is no input %s", name)
		}
		values[name] = value
	}
	r.contexts["inputs"] = values
	for _, s := range a.Runs.Steps {
		r.step(s)
	}
	outputs := map[string]string{}
	for name, out := range a.Outputs {
		outputs[name] = r.expand(out.Value)
	}
	return outputs
}

func (r *runner) step(s step) {
	condition := strings.TrimSuffix(strings.TrimPrefix(s.If, "${{"), "}}")
	if !strings.Contains(condition, "always()") && r.failed || condition != "" && !truthy(r.evaluate(condition)) {
		return
	}
	if s.Uses != "" {
		s.With = r.expandAll(s.With)
		r.used = append(r.used, s)
		return
	}
	if s.Shell != "bash" {
		r.t.Fatalf("step %q runs in %q", s.Name, s.Shell)
	}
	script := filepath.Join(r.t.TempDir(), "script.sh")
	write(r.t, script, []byte(r.expand(s.Run)), 0o644)
	c := exec.Command("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script)
	c.Dir = r.dir
	c.Env = append(os.Environ(), "PATH="+r.path, "RUNNER_TEMP="+filepath.Join(r.dir, "..", "temp"),
		"RUNNER_OS="+map[string]string{"linux": "Linux", "darwin": "macOS", "windows": "Windows"}[runtime.GOOS],
		"RUNNER_ARCH="+map[string]string{"amd64": "X64", "arm64": "ARM64"}[runtime.GOARCH])
	for name, path := range r.files {
		c.Env = append(c.Env, name+"="+path)
	}
	for name, value := range r.expandAll(s.Env) {
		c.Env = append(c.Env, name+"="+value)
	}
	out, err := c.CombinedOutput()
	r.log.Write(out)
	r.failed = r.failed || err != nil
	r.readCommands(s)
}

// readCommands applies the files of commands that the step wrote.
func (r *runner) readCommands(s step) {
	for line := range strings.Lines(string(read(r.t, r.files["GITHUB_PATH"]))) {
		r.path = strings.TrimSpace(line) + string(os.PathListSeparator) + r.path
	}
	outputs := map[string]any{}
	for line := range strings.Lines(string(read(r.t, r.files["GITHUB_OUTPUT"]))) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		outputs[name] = value
	}
	r.contexts["steps"].(map[string]any)[s.ID] = map[string]any{"outputs": outputs}
	for _, name := range []string{"GITHUB_PATH", "GITHUB_OUTPUT"} {
		write(r.t, r.files[name], nil, 0o644)
	}
}

var expression = regexp.MustCompile(`\$\{\{(.*?)\}\}`)

// expand replaces the expressions in a text by their values.
func (r *runner) expand(text string) string {
	return expression.ReplaceAllStringFunc(text, func(e string) string {
		value, _ := r.evaluate(expression.FindStringSubmatch(e)[1]).(string)
		return value
	})
}

func (r *runner) expandAll(texts map[string]string) map[string]string {
	expanded := maps.Clone(texts)
	for name, text := range texts {
		expanded[name] = r.expand(text)
	}
	return expanded
}

func (r *runner) evaluate(text string) any {
	node, err := actionlint.NewExprParser().Parse(actionlint.NewExprLexer(text + "}}"))
	if err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
	return r.value(node)
}

// value evaluates the part of GitHub's expressions that the action uses.
func (r *runner) value(node actionlint.ExprNode) any {
	switch n := node.(type) {
	case *actionlint.StringNode:
		return n.Value
	case *actionlint.VariableNode:
		return r.contexts[n.Name]
	case *actionlint.ObjectDerefNode:
		object, _ := r.value(n.Receiver).(map[string]any)
		return object[n.Property]
	case *actionlint.CompareOpNode:
		left, _ := r.value(n.Left).(string)
		right, _ := r.value(n.Right).(string)
		return (left == right) == (n.Kind == actionlint.CompareOpNodeKindEq)
	case *actionlint.LogicalOpNode:
		left := r.value(n.Left)
		if truthy(left) == (n.Kind == actionlint.LogicalOpNodeKindOr) {
			return left
		}
		return r.value(n.Right)
	case *actionlint.FuncCallNode:
		if n.Callee == "always" {
			return true
		}
	}
	r.t.Fatalf("expression %T is not supported", node)
	return nil
}

func truthy(value any) bool { return value != nil && value != "" && value != false }
