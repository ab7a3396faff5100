package report

import (
	_ "embed"
	"io"
)

//go:embed page.html
var pageText string

// A page is the data of page.html.
type page struct {
	document
	*Report
	Outcome outcome
	Facts   []fact
	Tiles   []tile
	Gates   []gateView
	Running []cost
	Found   *searched // nil without --auto
	Trained []trained
	Figures []figure
	Checked *verificationView
	Depth   figure // error by layer; without a drawing where there is none
	Around  figure // nodes around the largest drop, too
	Spread  []histogramView
	Tree    *branch
	Changed []*Weight
	Reasons []reason
	Steps   []*Row
	Notes   []remark
	Origins []origin
}

// HTML writes r as a self-contained page.
func (r *Report) HTML(w io.Writer) error {
	p := page{
		document: newDocument(visible(r.title())),
		Report:   r,
		Outcome:  r.Verdict.outcome(),
		Facts:    facts(r),
		Tiles:    tiles(r),
		Gates:    gateViews(r.Gates),
		Running:  runFigures(r),
		Tree:     tree(r.Weights),
		Checked:  view(r.Verification),
		Changed:  r.changed(),
		Reasons:  r.reasons(),
		Steps:    r.steps(),
		Notes:    r.notes(),
		Origins:  r.provenance(),
	}
	for _, draw := range []func() error{
		func() (err error) { p.Figures, err = r.charts(); return },
		func() (err error) { p.Depth, err = sqnrByLayer(r.Verification); return },
		func() (err error) { p.Around, err = neighborhood(r.Verification); return },
		func() (err error) { p.Spread, err = histogramViews(r.Histograms); return },
		func() (err error) { p.Trained, err = r.trainings(); return },
		func() (err error) { p.Found, err = r.searched(); return },
	} {
		if err := draw(); err != nil {
			return err
		}
	}
	return execute(w, pageText, p)
}
