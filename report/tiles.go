package report

import (
	"fmt"

	"github.com/mcompress/mcompress/report/verification"
)

// A tile is one headline figure. Bar is a percentage; Class is "failed" for a figure that became worse where its gate
// does not hold.
type tile struct{ Name, Big, Small, Bar, Class string }

func tiles(r *Report) []tile {
	t := r.Totals
	ts := []tile{
		{
			Name:  "File size",
			Big:   smaller(t.FileBytes),
			Small: size(t.FileBytes.Before) + " → " + size(t.FileBytes.After),
			Class: classOf(r.Gates, "min-ratio", "max-size"),
		},
	}
	if s := t.Sparsity; s.prunes() {
		ts = append(
			ts,
			tile{
				Name: "Sparsity",
				Big:  percent(s.Prunable.After),
				Small: "of the weights of layers are zero, " + percent(s.Prunable.Before) + " before; " +
					percent(s.All.After) + " of all weights",
				Bar: fmt.Sprintf("%.2f", 100*s.Prunable.After),
			},
		)
	}
	ts = append(ts, verificationTiles(r)...)
	held := size(t.RuntimeBytes.Before) + " → " + size(t.RuntimeBytes.After) + " in " + t.Runtime +
		", at its peak " + size(t.RuntimePeak.Before) + " → " + size(t.RuntimePeak.After)
	if note := r.MemoryNote(); note != "" {
		held += ", " + visible(note)
	}
	if e := t.Engine; e != nil {
		held += "; weights " + size(e.Before) + " → " + size(e.After) + " in " + engineName
	}
	ts = append(
		ts,
		tile{Name: "Runtime memory", Big: smaller(t.RuntimeBytes), Small: held},
		tile{
			Name:  "Coverage",
			Big:   percent(r.Coverage.Fraction),
			Small: r.Coverage.text(),
			Bar:   fmt.Sprintf("%.2f", 100*r.Coverage.Fraction),
			Class: classOf(r.Gates, "require-coverage"),
		},
	)
	if w := r.worst(); w != nil {
		ts = append(ts, tile{Name: "Lowest SQNR of a weight", Big: sqnr(w.Error), Small: visible(w.named())})
	}
	if m := t.Metadata; m != nil {
		ts = append(ts, tile{Name: "Doc strings and metadata", Big: size(m.After), Small: size(m.Before) + " before"})
	}
	if a := t.Activations; a != nil {
		ts = append(ts, tile{Name: "Peak activations", Big: size(a.After), Small: size(a.Before) + " before"})
	}
	return ts
}

// classOf is "failed" if one of the gates of these names does not hold.
func classOf(gates []Gate, names ...string) string {
	for _, g := range gates {
		for _, name := range names {
			if g.Name == name && g.class() == "failed" {
				return "failed"
			}
		}
	}
	return ""
}

// verificationTiles show accuracy, the metric, the worst output and the latency, as far as they were measured.
func verificationTiles(r *Report) []tile {
	v := r.Verification
	if v == nil {
		return nil
	}
	var ts []tile
	if a := v.Accuracy; a != nil {
		t := tile{Name: "Accuracy", Big: verification.Percent(a.After), Class: classOf(r.Gates, "max-accuracy-drop")}
		if a.Before != nil {
			t.Small = verification.Percent(*a.Before) + " before, " + points2(a.After-*a.Before)
		}
		ts = append(ts, t)
	}
	if m := v.Metric; m != nil {
		t := tile{
			Name:  "Metric " + visible(m.Name),
			Big:   "undefined",
			Small: m.Text(),
			Class: classOf(r.Gates, "max-metric-drop"),
		}
		if m.After != nil {
			t.Big = fmt.Sprintf("%.4g", *m.After)
		}
		ts = append(ts, t)
	}
	if o := v.Worst(); o != nil {
		ts = append(ts, outputTile(v, o, classOf(r.Gates, "min-sqnr", "min-cosine", "min-agreement")))
	}
	if l := v.Latency; l != nil {
		t := tile{
			Name:  "Latency",
			Big:   faster(l),
			Small: seconds(l.Before) + " → " + seconds(l.After),
			Class: classOf(r.Gates, "max-latency-ratio"),
		}
		ts = append(ts, t)
	}
	return ts
}

// outputTile shows the worst output.
func outputTile(v *verification.Result, o *verification.Output, class string) tile {
	t := tile{Name: "Output SQNR", Small: visible(o.Name), Class: class}
	switch {
	case o.Errors != nil:
		t.Big = o.Errors.Text()
		if o.Agreement != nil {
			t.Small += ", " + o.AgreementText()
		}
	case o.Sizes != nil:
		t.Name, t.Big, t.Small = "Output", "another size", visible(o.Name)+", "+o.Sizes.First
	case o.Agreement != nil:
		t.Name, t.Big = "Equal elements of the output", verification.Percent(*o.Agreement)
	}
	if v.Data.Caveat() != "" {
		t.Small += "; random inputs"
	}
	return t
}

// points2 is a change of a fraction in percentage points, with two decimals and its sign.
func points2(change float64) string { return fmt.Sprintf("%+.2f points", 100*change+0) }

// faster is the ratio of latencies in words.
func faster(l *verification.Latency) string {
	switch {
	case l.Before == 0 || l.After == 0:
		return "unknown"
	case l.After <= l.Before:
		return times(l.Before/l.After) + " faster"
	}
	return times(l.After/l.Before) + " slower"
}
