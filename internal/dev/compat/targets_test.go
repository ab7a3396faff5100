package main

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// targets are those of the combinations, each with the runtimes that must run its files.
func targets() map[string][]string {
	all := map[string][]string{
		"ort-1.17": {"ort-1.17"}, "ort": {"ort-1.31"}, "ort-1.20": {"ort-1.20"}, "web": {"web"},
		"openvino": {"openvino"}, "opencv": {"opencv"}, "tract": {"tract"},
		"ort-1.20,openvino,tract": {"ort-1.20", "ort-1.31", "openvino", "tract"}, "ort,opencv": {"ort-1.31", "opencv"},
	}
	if !conform.Exhaustive() {
		all = map[string][]string{"ort-1.17": all["ort-1.17"], "ort": all["ort"],
			"ort-1.17,ort": {"ort-1.17", "ort-1.31"}}
	}
	return all
}

// exactCPU chooses types whose 8-bit products saturate on no CPU, so that outputs do not depend on that of the test.
const exactCPU = ",any"

// targetSteps are the methods of the combinations: the steps of variants without a target of their own, and the
// automatic choices.
func targetSteps() []variant {
	all := slices.DeleteFunc(variants(), func(v variant) bool {
		return v.Name == source || slices.ContainsFunc(v.Steps,
			func(step []string) bool { return slices.Contains(step, "--target") })
	})
	return append(all,
		variant{Name: "float4", Steps: [][]string{{"quantize", "--method", "float4"}}, SQNR: exact},
		variant{Name: "l1, auto", Steps: [][]string{{"prune", "--method", "l1", "--amount", "0.9"},
			{"sparse", "--format", "auto"}}, SQNR: exact},
		variant{Name: "static-int8 --activation-type int16",
			Steps: [][]string{{"quantize", "--method", "static-int8", "--activation-type", "int16",
				"--data", "DATA"}}, SQNR: rounded},
	)
}

// unsupportedMessage is the documented refusal of a method that has no form for a target.
var unsupportedMessage = regexp.MustCompile(`not supported by .*; the nearest that is: \S+`)

// TestTargetsRunWhatTheyGet compresses models with each method for each target: the runtimes of the target load the
// file and its outputs are right, or the method is refused with the nearest one that has a form. Each model has a third
// of the pairs of a target and a method, or all under make test-exhaustive.
func TestTargetsRunWhatTheyGet(t *testing.T) {
	conform.Shared(t)
	make, err := newMaker(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	referring, tested := started(t, references()), sampledRuntimes()
	workers := map[string]worker{}
	for i, w := range started(t, tested) {
		workers[tested[i].Name] = w
	}
	for i, m := range sampledModels() {
		if !m.Sample || !conform.Exhaustive() && !slices.Contains([]string{"mlp", "opset10", "byte_bidi_lstm"},
			m.Name) {
			continue
		}
		float := runsFloat(t, make, referring, m, workers)
		for k, target := range slices.Sorted(maps.Keys(targets())) {
			names := targets()[target]
			for _, v := range conform.Part(i+k, 3, targetSteps()) {
				forTarget := variant{Name: v.Name + " " + target, SQNR: v.SQNR}
				for _, step := range v.Steps {
					if step = slices.Clone(step); step[0] != "prune" { // which writes no forms
						step = append(step, "--target", target+exactCPU)
					}
					forTarget.Steps = append(forTarget.Steps, step)
				}
				x, _, err := prepare(t.Context(), make, m, forTarget)
				var exit *exec.ExitError
				if errors.As(err, &exit) && exit.ExitCode() == 2 && unsupportedMessage.MatchString(err.Error()) {
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", m.Name, err)
					continue
				}
				x.refer(referring)
				for _, name := range names {
					now, _ := x.check(workers[name])
					if float[name] && now.State != right {
						t.Errorf("%s, %s in %s: %s %s %s", m.Name, forTarget.Name, name, now.State, now.Error,
							decibelText(now))
					}
				}
			}
		}
	}
}

// runsFloat are the runtimes in which the float model is right.
func runsFloat(t *testing.T, make *maker, referring []worker, m model, workers map[string]worker) map[string]bool {
	t.Helper()
	x, _, err := prepare(t.Context(), make, m, variant{Name: source, SQNR: exact})
	if err != nil {
		t.Fatal(err)
	}
	x.refer(referring)
	runs := map[string]bool{}
	for name, w := range workers {
		now, _ := x.check(w)
		runs[name] = now.State == right
	}
	return runs
}

func decibelText(c *cell) string {
	if c.SQNR == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%.1f dB", *c.SQNR))
}
