package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// realTables writes the results of the contests: how many settings were won, then a table for each family.
func realTables(all []*contest) string {
	slices.SortFunc(all, func(a, b *contest) int { return cmp.Compare(a.name, b.name) })
	var t strings.Builder
	t.WriteString("## Real models, every quantizer at many settings\n\n")
	t.WriteString("Ratio of the file sizes, doc strings excluded; top-1 accuracy where there are labels; lowest SQNR of an output in dB, in ONNX Runtime. Calibration\n")
	t.WriteString("samples, the same for both, are separate from the test samples: MNIST's training images, every fifth image of CIFAR-10, other pictures, the other half of a recording, other texts.\n")
	t.WriteString("Control models get random inputs. ONNX Runtime's settings are its defaults, then combinations of its tools' options; models are preprocessed for static ones other than the default. A setting is\n")
	t.WriteString("lost (**bold**) if none of our files is at most 1 % larger, has no lower accuracy (limited to that of the source) and no lower SQNR. It is won if\n")
	t.WriteString("one is and is better in size, accuracy or SQNR, or if ONNX Runtime fails or does not reduce the size. Where no single setting of ours is sufficient, `--auto --target-size` gets their size.\n\n")
	t.WriteString(tally(all))
	t.WriteString(chosen(all))
	for _, f := range families {
		t.WriteString(f.table(all))
	}
	return t.String()
}

// chosen lists what --auto made where no single setting of ours met one of theirs.
func chosen(all []*contest) string {
	var t strings.Builder
	for _, c := range all {
		for _, o := range c.chosen {
			fmt.Fprintf(&t, "| %s | `%s` | %s |\n", c.name, o.Name, o)
		}
	}
	if t.Len() == 0 {
		return ""
	}
	return "\nWhere none of our single settings matches one of theirs, `--auto` gets the size of theirs as its target:\n\n| model | | |\n|---|---|---|\n" + t.String()
}

// tally counts settings by result.
func tally(all []*contest) string {
	var n [lost + 1]int
	models, failed, missing := 0, 0, ""
	for _, c := range all {
		if c.err != nil {
			missing += fmt.Sprintf("%s is missing: %v\n", c.name, c.err)
			continue
		}
		for _, o := range c.theirs {
			n[compareWith(c.float, o, c.ours)]++
			if o.Why != "" {
				failed++
			}
		}
		if c.float != nil {
			models++
		}
	}
	return fmt.Sprintf("%d models × %d settings: %d won (ONNX Runtime fails in %d), %d equal, %d lost.\n", models,
		(n[won]+n[equal]+n[lost])/max(1, models), n[won], failed, n[equal], n[lost]) + missing
}

// table has a row a model: ours, then theirs.
func (f family) table(all []*contest) string {
	var t strings.Builder
	fmt.Fprintf(&t, "\n### %s\n\n", f.title)
	head := false
	for _, c := range all {
		if c.float == nil || c.err != nil {
			continue
		}
		names, cells := []string{"model"}, []string{c.name}
		for _, name := range f.ours {
			name = strings.TrimSuffix(name, withSamples)
			i := slices.IndexFunc(c.ours, func(o *outcome) bool { return o.Name == name })
			names, cells = append(names, "`"+name+"`"), append(cells, c.ours[i].String())
		}
		for _, o := range c.theirs {
			if strings.HasPrefix(o.Name, f.theirs) {
				names, cells = append(names, "ORT "+o.Name), append(cells, c.cell(o))
			}
		}
		if !head {
			fmt.Fprintf(&t, "| %s |\n|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
			head = true
		}
		fmt.Fprintf(&t, "| %s |\n", strings.Join(cells, " | "))
	}
	return t.String()
}

// cell is that of one of theirs.
func (c *contest) cell(o *outcome) string {
	if compareWith(c.float, o, c.ours) == lost {
		return "**" + o.String() + "**"
	}
	return o.String()
}
