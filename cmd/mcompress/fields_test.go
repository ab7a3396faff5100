package main

import (
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/report"
)

// withoutField are the flags of commands that write models, besides options of methods, for which a request has no
// field, with the reason.
var withoutField = map[string]string{
	"method":      "names the step",
	"format":      "names the step",
	"dense":       "names the step",
	"equalize":    "adds steps",
	"smooth":      "adds a step",
	"then":        "adds a step",
	"student":     "names the model",
	"derive":      "adds a step",
	"stages":      "repeats a step",
	"amount":      "an option of steps",
	"qat":         "an option of a step, and adds one",
	"keep-going":  "the default",
	"sensitivity": "Request.Sensitivities",

	"standard-ops": "a word of Target",
	"test":         "Verification.Data",
	"test-labels":  "Verification.Data.Labels",
	"test-limit":   "Verification.Data.Limit",
	"evaluator":    "Verification.Command",
	"digest":       "Reports.NoDigests",
	"profile":      "distill.WithRecorder, by Events.Steps",
	"trace":        "distill.WithRecorder, by Events.Steps",
	"json":         "how results are printed",
	"quiet":        "how results are printed",
	"color":        "how results are printed",
	"help":         "how results are printed",
	"version":      "how results are printed",
	"grace":        "of the process",
	"policy":       "Gates and Baseline, from a file",
}

// TestFlagsHaveFields requires a field of the request, or a reason, for each flag of the commands that write models.
func TestFlagsHaveFields(t *testing.T) {
	tool := newTool(io.Discard, io.Discard)
	known := map[string]bool{}
	for _, name := range fieldFlags {
		known[strings.Fields(strings.TrimPrefix(name, "--"))[0]] = true
	}
	for _, gate := range report.GateNames() {
		known[gate] = true
	}
	used := map[string]bool{}
	for _, c := range tool.app().Commands {
		if !slices.Contains([]string{"quantize", "prune", "sparse", "distill", "finetune", "apply"}, c.Name) {
			continue
		}
		for _, f := range append(c.Flags, tool.globalFlags()...) {
			name := f.Names()[0]
			used[name] = true
			if !known[name] && withoutField[name] == "" && !isMethodOption(name) {
				t.Errorf("%s --%s has no field in a request", c.Name, name)
			}
		}
	}
	for name := range withoutField {
		if !used[name] && name != "help" {
			t.Errorf("there is no flag --%s", name)
		}
	}
}

func isMethodOption(name string) bool {
	return slices.ContainsFunc(methods, func(m *pass.Method) bool { return pass.Flags(m).Lookup(name) != nil })
}

// withoutFlag are fields of a request without a flag, with the reason.
var withoutFlag = map[string]string{
	"Label":            "the name of the method or recipe",
	"Alternative":      "of quantize: weight-int8",
	"BaselineOptional": "of a policy",
	"Events":           "what the program prints",
	"Search.Options":   "options of methods",
	"Variants.Options": "options of methods",
	"Reports.NoErrors": "--report none",
	"Gates":            "each gate has a flag",
	"Registry":         "",
	"Limits":           "",
	"Verification":     "",
	"Reports":          "",
	"Program":          "this program",
	"Warning":          "what the program prints",
	"Progress":         "what the program prints",
}

// TestFieldsHaveFlags requires a flag of each field of a request, or a reason, and that each field of the table exists.
func TestFieldsHaveFlags(t *testing.T) {
	fields := map[string]bool{"Sensitivity": true, "FineTune.Save": true, "Index": true, "Key": true, "Signature": true, "AllowPrograms": true}
	for _, options := range []reflect.Type{
		reflect.TypeFor[mcompress.Request](), reflect.TypeFor[mcompress.Benchmark](),
		reflect.TypeFor[mcompress.SplitOptions](), reflect.TypeFor[mcompress.SplitRun](),
	} {
		addFields(fields, "", options)
	}
	for name := range fieldFlags {
		if !fields[name] {
			t.Errorf("there is no field %s", name)
		}
	}
	for name := range fields {
		_, reason := withoutFlag[name]
		_, ofEvents := strings.CutPrefix(name, "Events.")
		if fieldFlags[name] == "" && !reason && !ofEvents {
			t.Errorf("field %s has no flag", name)
		}
	}
	flags := map[string]bool{}
	tool := newTool(io.Discard, io.Discard)
	for _, c := range tool.app().Commands {
		for _, f := range append(c.Flags, tool.globalFlags()...) {
			flags["--"+f.Names()[0]] = true
		}
	}
	for _, name := range slices.Sorted(maps.Values(fieldFlags)) {
		if name = strings.Fields(name)[0]; name != "MODEL" && !flags[name] {
			t.Errorf("there is no flag %s", name)
		}
	}
}

// addFields adds the paths of exported fields. Those of Verification.Data are those of Data.
func addFields(to map[string]bool, prefix string, of reflect.Type) {
	for i := range of.NumField() {
		f := of.Field(i)
		if !f.IsExported() {
			continue
		}
		if path := prefix + f.Name; path != "Data.Path" && path != "Verification.Data" {
			to[path] = true
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if path := prefix + f.Name; inner.Kind() == reflect.Struct && !strings.HasPrefix(path, "Verification.") {
			addFields(to, path+".", inner)
		}
	}
}
