package job_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/evidence"
	"github.com/mcompress/mcompress/internal/job"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/pass"
	"github.com/mcompress/mcompress/quantize"
	"github.com/mcompress/mcompress/report"
)

// packedOptions are those of a model that is packed under the name of its source.
func packedOptions(t *testing.T, in string) job.Options {
	o := options(in, step(t, quantize.DynamicInt8{}.Method()))
	o.Output, o.Reports = strings.TrimSuffix(in, ".onnx")+".mcz", []string{"json"}
	return o
}

// content is the bytes of a model file, packed or not.
func content(t *testing.T, path string) []byte {
	t.Helper()
	f, err := onnx.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, f.Parts()[0].Size)
	if _, err := f.Parts()[0].ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

// A packed output holds the model that is written otherwise, and its report is about the packed file.
func TestOutputIsPackedByItsName(t *testing.T) {
	in := take(t, "mlp.onnx")
	plain := run(t, options(in, step(t, quantize.DynamicInt8{}.Method())))
	r := run(t, packedOptions(t, in))
	want := []string{"mlp.environment.json", "mlp.mcz", "mlp.onnx", "mlp.report.json", "mlp.small.onnx"}
	if got := files(t, in); !slices.Equal(got, want) {
		t.Fatalf("files %v, want %v", got, want)
	}
	if !bytes.Equal(content(t, r.Output), content(t, plain.Output)) {
		t.Error("another model is in the packed file")
	}
	st, err := os.Stat(r.Output)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Report.Result.Files, []report.File{{Name: "mlp.mcz", Bytes: st.Size(),
		SHA256: digest(t, r.Output)}}; !slices.Equal(got, want) {
		t.Errorf("the report has %v, want %v", got, want)
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(in), "mlp.report.json"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := evidence.Verify(context.Background(), evidence.Folder(filepath.Dir(in)), "mlp.report.json", text,
		evidence.Limits{AllowRandomInputs: true})
	if err != nil || !found.Matches() {
		t.Errorf("verify-report: %v %v", found.Mismatches, err)
	}
}

// Gates on size are about the packed file, with verification and without it.
func TestGatesOnPackedOutputs(t *testing.T) {
	for _, verify := range []*job.Verification{nil, {}} {
		in := take(t, "mlp.onnx")
		o := packedOptions(t, in)
		o.Verify, o.Reports = verify, nil
		ratio := run(t, o).Report.Totals.Ratio
		o.Gates = []report.Limit{{Name: "min-ratio", Bound: ratio - 0.01}}
		if r := run(t, o); r.Rejected {
			t.Errorf("rejected: %v", r.Report.Gates)
		}
		o.Output = filepath.Join(filepath.Dir(in), "b.mcz")
		o.Gates[0].Bound = ratio + 0.01
		if got, want := run(t, o).Rejected, files(t, in); !got ||
			!slices.Equal(want, []string{"b.rejected.mcz", "mlp.mcz", "mlp.onnx"}) {
			t.Errorf("rejected %v, files %v", got, want)
		}
	}
}

// Data files of a model are in the packed file, and those next to its source stay.
func TestPackedOutputHasExternalData(t *testing.T) {
	in := take(t, "external.onnx", "external_a.bin", "external_b.bin")
	r := run(t, packedOptions(t, in))
	f, err := onnx.Open(r.Output)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var names []string
	for _, p := range f.Parts() {
		names = append(names, p.Name)
	}
	if want := []string{"external.onnx", "external.onnx.data"}; !slices.Equal(names, want) {
		t.Errorf("parts %v, want %v", names, want)
	}
	if got, want := files(t, in), []string{"external.environment.json", "external.mcz", "external.onnx",
		"external.report.json", "external_a.bin", "external_b.bin"}; !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

func TestDryRunOfPackedOutputIsRefused(t *testing.T) {
	in := take(t, "mlp.onnx")
	o := packedOptions(t, in)
	o.DryRun = true
	var wrong *pass.OptionError
	if _, err := job.Run(context.Background(), o); !errors.As(err, &wrong) ||
		!strings.Contains(err.Error(), "without .mcz") {
		t.Errorf("error %v", err)
	}
}
