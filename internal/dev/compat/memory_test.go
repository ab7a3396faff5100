package main

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/conform"
)

// The largest differences of memory, in fractions: that of a form from the committed figure, and an estimate of a
// report from a measured process. Processes that load one file differ by a fifth, and estimates by a third from most:
// beyond a half, the estimate is of something else.
const (
	recordedMemory  = 0.25
	estimatedMemory = 0.5
)

// TestMemoryIsAsRecordedAndEstimated loads large models in the newest ONNX Runtime: those of default forms take at most
// mostMemory times the memory of float, or what the committed results have, and about what the report of the file says.
func TestMemoryIsAsRecordedAndEstimated(t *testing.T) {
	conform.Shared(t)
	recorded, folder := committed(t, memoryResults), t.TempDir()
	make, err := newMaker(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	var r runtime
	for _, of := range runtimes() {
		if of.Name == newest {
			r = of
		}
	}
	for model, names := range map[string][]string{
		"large-products":     {source, "weight-int8", "weight-int4", "weight-int2", "dynamic-int8", "float8"},
		"large-convolutions": {source, "weight-int8"},
	} {
		m, err := writeLarge(t.Context(), model, folder)
		if err != nil {
			t.Fatal(err)
		}
		measured, float := &matrix{}, (*cell)(nil)
		for _, v := range memoryVariants() {
			if !strings.Contains(","+strings.Join(names, ",")+",", ","+v.Name+",") {
				continue
			}
			x, _, err := prepare(t.Context(), make, m, v)
			if err != nil {
				t.Fatal(err)
			}
			w := started(t, []runtime{r})[0] // a new process
			_, a := x.check(w)
			w.close()
			if a.Error != "" || a.Resident == 0 || a.Memory == 0 {
				t.Fatalf("%s of %s: %s, %d bytes, %d at the peak", v.Name, model, a.Error, a.Resident, a.Memory)
			}
			c := &cell{Resident: a.Resident, Memory: a.Memory}
			if v.Name == source {
				float = c
			}
			f := measured.file(v.Name, model, "measured", nil)
			f.Cells[r.Name] = c
			measured.file(source, model, "measured", nil).Cells[r.Name] = float
			was := recorded.find(v.Name, model)
			if was == nil {
				t.Fatalf("%s of %s is not in %s: make compat", v.Name, model, memoryResults)
			}
			compareMemory(t, measured, f, r, was)
			if v.Name != source {
				compareEstimate(t, v.Name+" of "+model, x.path, float, c)
			}
		}
	}
}

// TestExcessesHaveReasons requires a form that is unpacked of each file of a default form that takes more memory than
// float, and cells of all files.
func TestExcessesHaveReasons(t *testing.T) {
	m := committed(t, memoryResults)
	for _, e := range excesses(m) {
		if e.reason() == "" {
			t.Errorf("%s of %s takes %.2f × the memory of float, and none of its forms %v is one that is unpacked",
				e.Variant, e.Model, e.most, e.Forms)
		}
	}
	for _, model := range largeModels("") {
		for _, v := range memoryVariants() {
			f := m.find(v.Name, model.Name)
			for _, r := range runtimes() {
				if r.measuresMemory() && (f == nil || f.Cells[r.Name] == nil) {
					t.Errorf("%s of %s in %s is not in %s: make compat", v.Name, model.Name, r.Name, memoryResults)
				}
			}
		}
	}
}

// compareMemory requires the memory of f to be at most mostMemory times that of float, or about what was recorded for
// f. The figures of f are compared and not their quotients by float: ONNX Runtime frees the weights that it has packed,
// and whether glibc's malloc returns their buffers to the system depends on what the process has allocated before.
// Float products of 104 MiB took from 99 to 171 MiB in one version, where forms differ by a twentieth.
func compareMemory(t *testing.T, m *matrix, f *file, r runtime, was *file) {
	t.Helper()
	float, now, recorded := m.find(source, f.Model).Cells[r.Name], f.Cells[r.Name], was.Cells[r.Name]
	for _, c := range []struct {
		what            string
		now, float, was int64
	}{{"resident", now.Resident, float.Resident, recorded.Resident},
		{"peak", now.Memory, float.Memory, recorded.Memory}} {
		if float64(c.now) > mostMemory*float64(c.float) && float64(c.now) > (1+recordedMemory)*float64(c.was) {
			t.Errorf("%s of %s in %s: %s %d MiB, was %d; float has %d", f.Variant, f.Model, r.Name, c.what, c.now>>20,
				c.was>>20, c.float>>20)
		}
	}
}

// compareEstimate compares the estimates in the report of the file with measured memory.
func compareEstimate(t *testing.T, name, path string, float, c *cell) {
	t.Helper()
	text, err := os.ReadFile(strings.TrimSuffix(path, ".onnx") + ".report.json")
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Totals struct {
			Runtime struct{ Before, After int64 } `json:"runtime_bytes"`
			Peak    struct{ Before, After int64 } `json:"runtime_peak_bytes"`
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	// The measured growth has the code and the buffers of the runtime, too, which do not depend on the model.
	const own = 10 << 20
	for _, e := range []struct {
		what                string
		estimated, measured int64
	}{
		{"float", report.Totals.Runtime.Before, float.Resident},
		{"peak of float", report.Totals.Peak.Before, float.Memory},
		{"resident", report.Totals.Runtime.After, c.Resident}, {"peak", report.Totals.Peak.After, c.Memory},
	} {
		if difference := float64(e.estimated+own)/float64(e.measured) - 1; math.Abs(difference) > estimatedMemory {
			t.Errorf("%s: %s estimated %d MiB, measured %d MiB", name, e.what, (e.estimated+own)>>20, e.measured>>20)
		}
	}
}
