package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// mostMemory is the resident memory or its peak, divided by that of the float model, above which a form takes more
// memory than float.
const mostMemory = 1.05

// unpacked are the forms of defaults that may take more memory than float in ONNX Runtime, with the reason: of the
// forms tried, none that is not slower takes less.
var unpacked = map[string]string{
	"cast-mul":      "folded by loading; forms that stay quantized are slower",
	"cast-float16":  "folded by loading into a copy of each weight",
	"cast-bfloat16": "folded by loading into a copy of each weight",
	"coo":           "folded by loading",
	"csr":           "folded by loading",
	"bsr":           "folded by loading",
	"bitmask":       "folded by loading",
	"delta":         "folded by loading",
}

// An excess is a file of a default form that takes more memory than float in some versions of ONNX Runtime from 1.20
// on.
type excess struct {
	*file
	most     float64
	runtimes []string
}

// reason is the one of a form of the file that is unpacked, "" if there is none.
func (e excess) reason() string {
	for _, form := range e.Forms {
		if text := unpacked[form]; text != "" {
			return form + ": " + text
		}
	}
	if !slices.ContainsFunc(e.Forms, func(form string) bool { return !slices.Contains(asFloat, form) }) {
		return "holds the values of the float model: what the allocator keeps differs"
	}
	return ""
}

// asFloat are the forms of which ONNX Runtime holds float weights of at most the size of those of the source, once.
// Files with them, and with no form at all, show how much one allocator differs: up to 1.65 × in some versions.
var asFloat = []string{"in-place", "rescaled", "factors", "smaller", "cast-product"}

// excesses are the files for which the rule of defaults does not hold: at most mostMemory times the memory of float.
func excesses(m *matrix) []excess {
	var all []excess
	for _, f := range m.Files {
		if f.Variant == source || !isDefault(f.Variant) {
			continue
		}
		e := excess{file: f, most: mostMemory}
		for _, r := range runtimes() {
			resident, peak := relativeMemory(m, f, r)
			if most := rounded2(max(resident, peak)); r.Adapter == "ort" && r.Name != oldest && most > mostMemory {
				e.runtimes, e.most = append(e.runtimes, r.short()), max(e.most, most)
			}
		}
		if e.runtimes != nil {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b excess) int { return int(1000*b.most) - int(1000*a.most) })
	return all
}

// relativeMemory is the growth of resident memory by loading f, and of its peak by loading and one run, divided by
// those of the float model; 0 if they were not measured.
func relativeMemory(m *matrix, f *file, r runtime) (resident, peak float64) {
	float := m.find(source, f.Model)
	if float == nil || float.Cells[r.Name] == nil || f.Cells[r.Name] == nil || float.Cells[r.Name].Resident == 0 ||
		float.Cells[r.Name].Memory == 0 {
		return 0, 0
	}
	c, of := f.Cells[r.Name], float.Cells[r.Name]
	return float64(c.Resident) / float64(of.Resident), float64(c.Memory) / float64(of.Memory)
}

// rounded2 is x in the precision of the tables: the memory of one file differs by about 1 % between processes.
func rounded2(x float64) float64 { return math.Round(100*x) / 100 }

// memorySection has the tables of memory.
func memorySection(m *matrix) string {
	var b strings.Builder
	var measured []runtime
	for _, r := range runtimes() {
		if r.measuresMemory() {
			measured = append(measured, r)
		}
	}
	fmt.Fprintf(&b, "\n## Memory\n\nModels of about 100 MB of one kind of layer, in a new process: resident after load ÷ float, and peak of load and one run ÷ float. Above %.2f, bold, is more than float.\n", mostMemory)
	b.WriteString("The row of float has MiB.\n")
	for _, model := range largeModels("") {
		fmt.Fprintf(&b, "\n### %s\n\n| command |", model.Name)
		for _, r := range measured {
			fmt.Fprintf(&b, " %s |", r.short())
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(measured)) + "\n")
		for _, v := range memoryVariants() {
			f := m.find(v.Name, model.Name)
			if f == nil {
				continue
			}
			fmt.Fprintf(&b, "| %s |", v.Name)
			for _, r := range measured {
				fmt.Fprintf(&b, " %s |", memoryCell(m, f, r))
			}
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "\n### More than float\n\nFiles of default forms that take more than %.2f × the memory of float in a version of ONNX Runtime from 1.20 on, the most first; [the forms tried](decisions/folded-constants.md).\n\n| command | model | most | versions | reason |\n|---|---|---:|---|---|\n", mostMemory)
	for _, e := range excesses(m) {
		fmt.Fprintf(&b, "| %s | %s | %.2f | %s | %s |\n", e.Variant, e.Model, e.most, strings.Join(e.runtimes, ", "),
			e.reason())
	}
	return b.String()
}

func memoryCell(m *matrix, f *file, r runtime) string {
	if c := f.Cells[r.Name]; f.Variant == source && c != nil && c.Memory > 0 {
		return fmt.Sprintf("%d, %d", c.Resident>>20, c.Memory>>20)
	}
	resident, peak := relativeMemory(m, f, r)
	if resident == 0 {
		return ""
	}
	bold := func(x float64) string {
		if rounded2(x) > mostMemory {
			return fmt.Sprintf("**%.2f**", x)
		}
		return fmt.Sprintf("%.2f", x)
	}
	return bold(resident) + ", " + bold(peak)
}
