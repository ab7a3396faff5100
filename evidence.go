package mcompress

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/evidence"
	"github.com/mcompress/mcompress/internal/sign"
	"github.com/mcompress/mcompress/internal/untrusted"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/report"
)

// Evidence describes how reports are verified.
type Evidence struct {
	Key       string // public key of signatures: a file or env:NAME, elliptic curve as PEM; empty to verify none
	Signature string // path; empty for NAME.sig next to the model, or model.sig in the folder
	ReportDir string // folder of the reports; empty for that of the model

	Gates             []Gate // on the figures of the reports
	AllowRandomInputs bool   // gates on outputs hold for reports whose models were compared on random inputs
	Baseline          string // as in a Request; empty for those of the reports
	BaselineOptional  bool   // as in a Request

	Registry Registry
	Events   Events // Note, Warning
}

// A Verdict is what was compared of one report, or of a model or folder without one.
type Verdict struct {
	Report     string   `json:"report"`               // name of the report
	Model      string   `json:"model,omitempty"`      // name of the model that it is about
	Checked    []string `json:"checked"`              // comparisons, whether or not they match
	Unchecked  []string `json:"unchecked,omitempty"`  // omitted comparisons, with the reason
	Mismatches []string `json:"mismatches,omitempty"` // one line each, which begins with a name
}

// Matches reports whether everything that was compared matches, gates included.
func (v Verdict) Matches() bool { return len(v.Mismatches) == 0 }

// A verifier is an Evidence with what its sources name.
type verifier struct {
	Evidence
	public *ecdsa.PublicKey // of Key; nil for none
	limits evidence.Limits
}

// newVerifier reads the key. The baseline is that of the reports.
func (e Evidence) newVerifier() (*verifier, error) {
	s := &verifier{Evidence: e, limits: evidence.Limits{Gates: e.Gates, AllowRandomInputs: e.AllowRandomInputs}}
	if e.Key == "" {
		if e.Signature != "" {
			return nil, fieldErrorf("{Signature} requires {Key}")
		}
		return s, nil
	}
	var err error
	if s.public, err = sign.PublicKey(e.Key); err != nil {
		return nil, keyError(err)
	}
	return s, nil
}

// baseline reads the baseline that is named.
func (s *verifier) baseline(ctx context.Context) (err error) {
	if s.Baseline == "" {
		return nil
	}
	if err := CheckBaseline(s.Gates, s.Baseline); err != nil {
		return err
	}
	s.limits.Baseline, err = LoadBaseline(ctx, s.Baseline, s.BaselineOptional, s.Registry, s.Events)
	return err
}

// A ReportVerifier verifies any number of reports with one Evidence.
type ReportVerifier struct{ verifier }

// Open reads the key and the baseline.
func (e Evidence) Open(ctx context.Context) (*ReportVerifier, error) {
	s, err := e.newVerifier()
	if err == nil {
		err = s.baseline(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &ReportVerifier{*s}, nil
}

// Verify recomputes the digest of each file that a report names, of the report and of its recipe, and compares the
// metadata of the model, the figures of the report, its Markdown and HTML, and signatures. It is given a model, a
// report, a folder of reports, or a reference to a registry, which is verified by its digests without downloading the
// model. An error is one of reading; what does not match is in the verdicts.
func (v *ReportVerifier) Verify(ctx context.Context, of string) ([]Verdict, error) {
	found, err := v.verify(ctx, of)
	return verdicts(found), err
}

func verdicts(of []*evidence.Result) (list []Verdict) {
	for _, r := range of {
		list = append(list, Verdict{r.Report, r.Model, r.Checked, r.Unchecked, r.Mismatches})
	}
	return list
}

// A Promotion is the end of Promote.
type Promotion struct {
	Verdicts []Verdict
	Moved    *registry.Reference // the alias; nil if a verdict does not match
	Digest   registry.Reference  // of the artifact
	Report   *report.Report
}

// Promote verifies the report of an artifact as ReportVerifier does, evaluates the gates on it, and lets an alias or
// tag of the registry name it if all match. Gates that name a baseline compare with the artifact that has the alias
// now, unless the evidence has a baseline; where there is none yet they are open. Content is not transferred.
func Promote(ctx context.Context, reference, alias string, e Evidence) (*Promotion, error) {
	ref, err := registry.Parse(reference)
	if err != nil {
		return nil, err
	}
	s, err := e.newVerifier()
	if err != nil {
		return nil, err
	}
	e.Registry.warnInsecure(ref, e.Events)
	stored, rep, err := StoredReport(ctx, e.Registry.options(), ref)
	if err != nil {
		return nil, err
	}
	// Before the gates are evaluated, some of which compare with it.
	if err := s.champion(ctx, ref, alias); err != nil {
		return nil, err
	}
	files := evidence.Stored{Stored: stored}
	results, err := verifyAll(ctx, files, s.limits)
	if err != nil {
		return nil, err
	}
	if results == nil {
		return nil, fmt.Errorf("%s: %w", ref, ErrNoReport) // the report has another name
	}
	if err := s.ofStored(ctx, files, results[0]); err != nil {
		return nil, err
	}
	p := &Promotion{Verdicts: verdicts(results), Digest: stored.Digest, Report: rep}
	if slices.ContainsFunc(p.Verdicts, func(v Verdict) bool { return !v.Matches() }) {
		return p, nil
	}
	// Last, and without content: until here the alias names the artifact before.
	moved, err := registry.Move(ctx, ref, alias, e.Registry.options())
	if err != nil {
		return nil, err
	}
	p.Moved = &moved
	return p, nil
}

// champion sets the baseline: that which is named, else the artifact that has the alias.
func (s *verifier) champion(ctx context.Context, ref registry.Reference, alias string) error {
	if s.Baseline != "" || RelativeGate(s.Gates) == "" {
		return s.baseline(ctx)
	}
	ref.Tag, ref.Digest = alias, ""
	_, rep, err := StoredReport(ctx, s.Registry.options(), ref)
	switch {
	case errors.Is(err, registry.ErrNotFound):
		s.limits.Baseline = &report.Baseline{Name: ref.String(), None: true}
		s.Events.note(fmt.Sprintf("promote: no model is %s yet: gates relative to it are not evaluated", ref))
		return nil
	case err != nil:
		return err
	}
	s.limits.Baseline = report.NewBaseline(ref.String(), rep)
	return nil
}

// verify verifies the reports of an argument.
func (s *verifier) verify(ctx context.Context, arg string) ([]*evidence.Result, error) {
	if registry.IsReference(arg) {
		return s.stored(ctx, arg)
	}
	st, err := os.Stat(arg)
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		return s.folder(ctx, arg)
	case reportNamed(arg) != "":
		return s.report(ctx, evidence.Folder(filepath.Dir(arg)), evidence.Folder(filepath.Dir(arg)),
			filepath.Base(reportNamed(arg)))
	}
	files := evidence.Folder(filepath.Dir(arg))
	documents := files
	if s.ReportDir != "" {
		documents = evidence.Folder(s.ReportDir)
	}
	model := filepath.Base(arg)
	name, err := evidence.ReportOf(ctx, documents, model)
	switch {
	case err != nil:
		return nil, err
	case name == "":
		r := &evidence.Result{Model: model}
		return []*evidence.Result{r}, s.unreported(ctx, arg, arg+": no report names it", r)
	}
	return s.report(ctx, files, documents, name)
}

// reportNamed is the JSON form of the report that path is a form of; "" if it is none.
func reportNamed(path string) string {
	for _, format := range report.Formats() {
		if stem, ok := strings.CutSuffix(path, format.Suffix); ok {
			return stem + report.JSONSuffix
		}
	}
	return ""
}

// folder verifies the reports of a folder, and the signature of the folder or those of its models.
func (s *verifier) folder(ctx context.Context, dir string) ([]*evidence.Result, error) {
	results, err := verifyAll(ctx, evidence.Folder(dir), s.limits)
	if err != nil {
		return nil, err
	}
	whole := &evidence.Result{Model: dir}
	if results == nil {
		return []*evidence.Result{whole}, s.unreported(ctx, dir, dir+": no report", whole)
	}
	// One signature of the folder covers all models in it; without it each model has its own.
	_, err = os.Stat(sign.DefaultPath(dir))
	if s.Signature != "" || err == nil {
		return append(results, whole), s.ofPath(ctx, dir, whole)
	}
	for _, r := range results {
		if err := s.ofModel(ctx, evidence.Folder(dir), r); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// unreported is the result of a model or folder without a report, of which a signature may be verified nevertheless.
func (s *verifier) unreported(ctx context.Context, path, problem string, r *evidence.Result) error {
	if s.public == nil {
		r.Mismatches = append(r.Mismatches, problem)
		return nil
	}
	r.Unchecked = append(r.Unchecked, problem)
	return s.ofPath(ctx, path, r)
}

// report verifies a report of documents, and the signature of its model.
func (s *verifier) report(ctx context.Context, files, documents evidence.Folder,
	name string) ([]*evidence.Result, error) {
	r, err := verifyOne(ctx, files, documents, name, s.limits)
	if err != nil {
		return nil, err
	}
	return []*evidence.Result{r}, s.ofModel(ctx, files, r)
}

// ofModel verifies the signature of the model of a report, unless it is not there.
func (s *verifier) ofModel(ctx context.Context, files evidence.Folder, r *evidence.Result) error {
	if r.Model == "" {
		return nil
	}
	path, err := untrusted.Path(string(files), r.Model)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return nil // a mismatch of the report already
	}
	return s.ofPath(ctx, path, r)
}

// stored verifies the reports of an artifact in a registry, or of a folder.
func (s *verifier) stored(ctx context.Context, arg string) ([]*evidence.Result, error) {
	ref, err := registry.Parse(arg)
	if err != nil {
		return nil, err
	}
	if ref.Host == "" {
		return s.folder(ctx, ref.Name)
	}
	s.Registry.warnInsecure(ref, s.Events)
	artifact, err := registry.List(ctx, ref, s.Registry.options())
	if err != nil {
		return nil, err
	}
	files := evidence.Stored{Stored: artifact}
	results, err := verifyAll(ctx, files, s.limits)
	if err != nil {
		return nil, err
	}
	if results == nil {
		results = []*evidence.Result{{Mismatches: []string{arg + ": no report"}}}
	}
	return results, s.ofStored(ctx, files, results[0])
}

// verifyAll verifies every report; nil if there is none.
func verifyAll(ctx context.Context, files evidence.Files, limits evidence.Limits) ([]*evidence.Result, error) {
	names, err := files.Names(ctx)
	if err != nil {
		return nil, err
	}
	var results []*evidence.Result
	for _, name := range evidence.Reports(names) {
		r, err := verifyOne(ctx, files, files, name, limits)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// verifyOne verifies a report of documents.
func verifyOne(ctx context.Context, files, documents evidence.Files, name string,
	limits evidence.Limits) (*evidence.Result, error) {
	text, err := documents.Read(ctx, name)
	if errors.Is(err, evidence.ErrAbsent) {
		return &evidence.Result{Report: name, Mismatches: []string{err.Error()}}, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := evidence.Verify(ctx, files, name, text, limits)
	if err == nil {
		err = r.Rendered(ctx, documents, text)
	}
	return r, err
}

// ofPath verifies the signature of a model or folder.
func (s *verifier) ofPath(ctx context.Context, path string, res *evidence.Result) error {
	signature := s.Signature
	if signature == "" {
		signature = sign.DefaultPath(path)
	}
	_, err := os.Stat(signature)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.Signature == "":
		s.missing(filepath.Base(signature), res)
		return nil
	case err != nil:
		return err
	case s.public == nil:
		res.Unchecked = append(res.Unchecked, filepath.Base(signature)+": verified with --key only")
		return nil
	}
	files, err := s.files(ctx, path, res)
	if err != nil {
		return err
	}
	found, err := sign.Verify(ctx, s.public, signature, files, func(ctx context.Context, path string) (string, error) {
		sum, _, err := evidence.Folder(filepath.Dir(path)).Digest(ctx, filepath.Base(path))
		return sum, err
	})
	s.add(filepath.Base(signature), found, res)
	return err
}

// files are the files that a signature has to cover. A model of which only a pointer is here has those of its report.
func (s *verifier) files(ctx context.Context, path string, res *evidence.Result) (sign.Files, error) {
	if evidence.IsPointer(path) {
		return sign.Files{Root: filepath.Dir(path), Names: append([]string{res.Report}, res.Files...)}, nil
	}
	return sign.FilesOf(ctx, path)
}

// ofStored verifies the signature of an artifact by the digests of the registry.
func (s *verifier) ofStored(ctx context.Context, files evidence.Stored, res *evidence.Result) error {
	f, ok := files.Find(registry.Signature)
	switch {
	case !ok:
		s.missing("signature", res)
		return nil
	case s.public == nil:
		res.Unchecked = append(res.Unchecked, f.Name+": verified with --key only")
		return nil
	}
	text, err := files.Read(ctx, f.Name)
	if err != nil {
		return err
	}
	signed, err := sign.Open(text, s.public)
	if errors.Is(err, sign.ErrKey) {
		s.add(f.Name, []sign.Mismatch{{File: f.Name, Problem: err.Error()}}, res)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	var present []string
	for _, p := range files.Stored.Files {
		// The page has times of the run: sign.FilesOf leaves it out.
		if !strings.HasSuffix(p.Name, sign.Suffix) && p.Role != registry.ReportPage {
			present = append(present, p.Name)
		}
	}
	found, err := signed.Compare(ctx, present, func(ctx context.Context, name string) (string, error) {
		sum, _, err := files.Digest(ctx, name)
		return sum, err
	})
	s.add(f.Name, found, res)
	return err
}

// missing records that there is no signature, which is a mismatch if there is a key.
func (s *verifier) missing(name string, res *evidence.Result) {
	if s.public != nil {
		res.Mismatches = append(res.Mismatches, name+": no signature")
	}
}

func (s *verifier) add(name string, found []sign.Mismatch, res *evidence.Result) {
	res.Checked = append(res.Checked, "signature")
	for _, m := range found {
		res.Mismatches = append(res.Mismatches, fmt.Sprintf("%s: %s: %s", name, m.File, m.Problem))
	}
}
