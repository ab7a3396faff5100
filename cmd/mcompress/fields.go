package main

import (
	"errors"
	"strings"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/pass"
)

// fieldFlags are the flags of the fields of a request, for errors. The flag of a gate has its name.
var fieldFlags = map[string]string{
	"Models":                         "MODEL",
	"Steps":                          "--method",
	"Search":                         "--auto",
	"Search.Candidates":              "--candidates",
	"Search.MaxSize":                 "--target-size",
	"Search.MinRatio":                "--target-ratio",
	"Sensitivity":                    "--sensitivity",
	"Variants":                       "--variants",
	"Variants.DTypes":                "--variants",
	"Data":                           "--data",
	"Data.Labels":                    "--labels",
	"Data.Classes":                   "--classes",
	"Data.Columns":                   "--columns",
	"Data.Scale":                     "--scale",
	"Data.Mean":                      "--mean",
	"Data.Std":                       "--std",
	"Data.Reshape":                   "--reshape",
	"Data.Layout":                    "--layout",
	"Data.Fill":                      "--fill",
	"Data.Dims":                      "--dim",
	"Data.Carry":                     "--carry",
	"Data.Step":                      "--step",
	"Data.Limit":                     "--limit",
	"Data.Prefetch":                  "--prefetch",
	"Data.Loaders":                   "--loaders",
	"Target":                         "--target",
	"Output":                         "--output",
	"ExportDir":                      "--export",
	"DataFiles":                      "--data-files",
	"StripMetadata":                  "--strip-metadata",
	"KeepIR":                         "--keep-ir",
	"DryRun":                         "--dry-run",
	"NoSync":                         "--no-sync",
	"Restart":                        "--restart",
	"FineTune.Save":                  "--save",
	"Verification.Force":             "--verify",
	"Verification.Skip":              "--no-verify",
	"Verification.Batch":             "--batch",
	"Verification.Samples":           "--samples",
	"Verification.Seed":              "--seed",
	"Verification.Training":          "--data",
	"Verification.AllowRandomInputs": "--allow-random-inputs",
	"Verification.Metric":            "--metric",
	"Verification.Evaluator":         "--evaluator",
	"Verification.Command":           "--evaluator",
	"Verification.CommandLimit":      "--evaluator-timeout",
	"Verification.Perplexity":        "--perplexity",
	"Verification.Scores":            "--scores",
	"Verification.NoLayers":          "--no-layers",
	"Verification.Backend":           "--backend",
	"Verification.Library":           "--ort-lib",
	"Verification.WeightCache":       "--cache",
	"Verification.Relative":          "--rtol",
	"Verification.Absolute":          "--atol",
	"Baseline":                       "--baseline",
	"Reports.Formats":                "--report",
	"Reports.Dir":                    "--report-dir",
	"Reports.NoDigests":              "--digest none",
	"Reports.BaseModel":              "--base-model",
	"Reports.PipelineTag":            "--pipeline-tag",
	"List":                           "--files-from",
	"List.KeepPaths":                 "--files-from",
	"List.Shard":                     "--shard",
	"List.IfChanged":                 "--if-changed",
	"List.FailFast":                  "--fail-fast",
	"Push":                           "--push",
	"Registry.PlainHTTP":             "--plain-http",
	"Registry.Insecure":              "--insecure",
	"Registry.Overwrite":             "--overwrite",
	"Limits.Workers":                 "--workers",
	"Limits.Memory":                  "--memory-limit",
	"Limits.Steps":                   "--max-steps",
	"Key":                            "--key",
	"Signature":                      "--signature",
	"Index":                          "--index",
	"AllowPrograms":                  "--allow-programs",
	// of Benchmark, SplitOptions and SplitRun
	"Dims":        "--dim",
	"Seed":        "--seed",
	"Batch":       "--batch",
	"Samples":     "--samples",
	"Backend":     "--backend",
	"Library":     "--ort-lib",
	"WeightCache": "--cache",
	"Batches":     "--batch",
	"Warmup":      "--warmup",
	"Runs":        "--runs",
	"Time":        "--time",
	"Decode":      "--decode",
	"Prompt":      "--prompt",
	"Budget":      "--budget",
	"Halve":       "--on-oom",
	"Stages":      "--stages",
	"Ranks":       "--tensor-parallel",
	"Balance":     "--by",
	"Measure":     "--measure",
	"NoDigests":   "--digest none",
	"Piped":       "--run piped",
}

// flagOf is the flag of a field of a request.
func flagOf(field string) string {
	if gate, ok := strings.CutPrefix(field, "Gates."); ok {
		return "--" + gate
	}
	if name := fieldFlags[field]; name != "" {
		return name
	}
	return "{" + field + "}" // no field, but a name in braces
}

// A flagsError is an error about fields of a request, or options of steps, in the words of the command line.
type flagsError struct {
	text string
	err  error
}

func (e *flagsError) Error() string { return e.text }
func (e *flagsError) Unwrap() error { return e.err }

// inFlags is err, which may be nil, with the flags of the fields and options that it is about.
func inFlags(err error) error {
	var done *flagsError
	if err == nil || errors.As(err, &done) {
		return err
	}
	var field *mcompress.FieldError
	var option *pass.OptionError
	text := err.Error()
	if errors.As(err, &field) {
		text = strings.Replace(text, field.Error(), field.Text(flagOf), 1)
	}
	if errors.As(err, &option) {
		text = strings.Replace(text, option.Error(), option.Flags(), 1)
	}
	if text == err.Error() {
		return err
	}
	return &flagsError{text, err}
}
