package evidence

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
)

// A Result is the findings of Verify for one report.
type Result struct {
	Report     string   `json:"report"`               // name of the report
	Model      string   `json:"model,omitempty"`      // name of the model that it is about
	Files      []string `json:"-"`                    // names of all files of the result
	Checked    []string `json:"checked"`              // comparisons, whether or not they match
	Unchecked  []string `json:"unchecked,omitempty"`  // omitted comparisons, with the reason
	Mismatches []string `json:"mismatches,omitempty"` // one line each, which begins with a name
}

// Matches reports whether everything that was compared matches.
func (r *Result) Matches() bool { return len(r.Mismatches) == 0 }

func (r *Result) mismatch(name, format string, args ...any) {
	r.Mismatches = append(r.Mismatches, name+": "+fmt.Sprintf(format, args...))
}

// Reports are the names of the reports among names.
func Reports(names []string) []string {
	var found []string
	for _, name := range names {
		if strings.HasSuffix(name, report.JSONSuffix) {
			found = append(found, name)
		}
	}
	return found
}

// ReportOf is the name of the report that names the model: NAME.report.json, or another report next to it. It is "" if
// there is none.
func ReportOf(ctx context.Context, files Files, model string) (string, error) {
	names, err := files.Names(ctx)
	if err != nil {
		return "", err
	}
	own := report.Stem(model) + report.JSONSuffix
	// By its name first: the reports of large models have hundreds of megabytes, and others need not be read.
	if slices.Contains(names, own) {
		return own, nil
	}
	for _, name := range Reports(names) {
		if path.Dir(name) != path.Dir(model) {
			continue
		}
		text, err := files.Read(ctx, name)
		if errors.Is(err, ErrAbsent) {
			continue
		}
		if err != nil {
			return "", err
		}
		r, err := report.Read(bytes.NewReader(text))
		if err == nil &&
			slices.ContainsFunc(
				slices.Concat(r.Result.Files, r.Source.Files),
				func(f report.File) bool { return f.Name == path.Base(model) },
			) {
			return name, nil
		}
	}
	return "", nil
}

// Limits are gates in addition to those of a report.
type Limits struct {
	Gates    []report.Limit
	Baseline *report.Baseline // of gates; nil for that of the report

	AllowRandomInputs bool // gates on outputs hold for reports whose models were compared on random inputs
}

// Verify compares a report, of which text is the JSON form, with the files that it names in the folder of name, with
// their metadata and with itself. An error is one of reading; a report that is not valid is a mismatch.
func Verify(ctx context.Context, files Files, name string, text []byte, limits Limits) (*Result, error) {
	res := &Result{Report: name}
	r, err := report.Read(bytes.NewReader(text))
	if err != nil {
		res.mismatch(name, "%v", err)
		return res, nil
	}
	if err := res.digests(name, text, r); err != nil {
		return nil, err
	}
	v := verifier{ctx, files, path.Dir(name), res}
	if len(r.Result.Files) > 0 {
		res.Model = v.nameOf(r.Result.Files[0].Name)
	}
	if err := v.files(r); err != nil {
		return nil, err
	}
	// After the files: the graph of a file that is not that of the report would differ as well, in lines that explain nothing.
	if err := v.graph(r); err != nil {
		return nil, err
	}
	// A digest can be computed again after an edit: figures also have to agree with each other.
	for _, line := range r.Inconsistencies() {
		res.mismatch(name, "%s", line)
	}
	res.Checked = append(res.Checked, "figures")
	baseline := cmp.Or(limits.Baseline, r.Baseline)
	var wanted []report.Limit
	for _, l := range limits.Gates {
		// The first result of a repository has no baseline yet, and its policy must not refuse it.
		if baseline == nil && report.Relative(l.Name) {
			res.Unchecked = append(
				res.Unchecked,
				"gate "+l.Name+": the report has no baseline; name one with --baseline",
			)
			continue
		}
		wanted = append(wanted, l)
	}
	gates, err := r.Evaluate(wanted, baseline)
	if err != nil {
		return nil, err
	}
	random := report.NewVerdict(gates, r.Verification).RandomInputs
	if random && !limits.AllowRandomInputs {
		res.mismatch(
			name,
			"its models were compared on random inputs, which are no evidence of accuracy: compare them on samples, or add "+
				"--allow-random-inputs",
		)
	}
	// The gates of the run itself, one of which, finite, fails without being requested.
	gates = slices.DeleteFunc(gates, func(g report.Gate) bool { return slices.Contains(r.Gates, g) })
	gates = append(gates, r.Gates...)
	for _, g := range gates {
		if !g.Held && !g.Open {
			res.mismatch(name, "gate %s did not hold: %s", g.Name, g.Failure())
		}
	}
	if len(gates) > 0 {
		res.Checked = append(res.Checked, "gates"+report.NewVerdict(gates, r.Verification).Qualifier())
	}
	return res, nil
}

// digests compares the digests of the report and of its recipe.
func (res *Result) digests(name string, text []byte, r *report.Report) error {
	sum, err := report.Digest(text)
	switch {
	case err != nil:
		res.mismatch(name, "%v", err)
	// No comparison that is left out: a report that was edited could lose its digest with it.
	case r.Digest == "":
		res.mismatch(name, "the report has no digest: it was made with --digest none")
	case sum != r.Digest:
		res.mismatch(name, "the digest is %s, the report has %s: it was edited", sum, r.Digest)
	}
	res.Checked = append(res.Checked, "digest")
	if r.Recipe == nil {
		return nil
	}
	if sum, err = r.Recipe.Sum(); err != nil {
		return err
	}
	if sum != r.Recipe.SHA256 {
		res.mismatch(name, "the digest of the recipe is %s, the report has %s", sum, r.Recipe.SHA256)
	}
	res.Checked = append(res.Checked, "recipe")
	return nil
}

// A verifier compares a report with the files around it.
type verifier struct {
	ctx context.Context
	Files
	dir string // of the report
	res *Result
}

// nameOf is the name of a file that the report names.
func (v *verifier) nameOf(name string) string { return path.Join(v.dir, name) }

// files compares the files of the result, and those of the source and the recipe that are there.
func (v *verifier) files(r *report.Report) error {
	if r.Result.Planned {
		v.res.mismatch(v.res.Report, "the report is of a dry run: there is no model")
		return nil
	}
	names, err := v.Names(v.ctx)
	if err != nil {
		return err
	}
	packed, err := v.packed(r.Result.Files, names)
	if err != nil {
		return err
	}
	for _, f := range r.Result.Files {
		// Unpacked files may be next to the packed one, and have to be right then, too.
		if packed && !slices.Contains(names, v.nameOf(f.Name)) {
			continue
		}
		v.res.Files = append(v.res.Files, v.nameOf(f.Name))
		if err := v.file(f, true); err != nil {
			return err
		}
	}
	// Not required: evidence is verified where only the result is, as in a registry.
	for _, f := range r.Source.Files {
		if err := v.file(f, false); err != nil {
			return err
		}
	}
	if r.Recipe == nil {
		return nil
	}
	for _, in := range r.Recipe.Inputs {
		// The recipe has digests of its inputs and no sizes.
		f := report.File{Name: in.Name, Bytes: -1, SHA256: in.SHA256}
		// Before files: the digest of a folder of samples is that of its list, and reading the folder itself is an error.
		if found, err := v.folder(f, names); err != nil {
			return err
		} else if found {
			continue
		}
		if parts := partsOf(r, in); parts != nil {
			if err := v.model(f, parts); err != nil {
				return err
			}
			continue
		}
		if err := v.file(f, false); err != nil {
			return err
		}
	}
	return nil
}

// partsOf are the files of an input that is a teacher with external data, whose digest is that of their list; nil for
// other inputs.
func partsOf(r *report.Report, in report.RecipeInput) []report.File {
	for _, t := range r.Teachers {
		if len(t.Files) > 1 && combined(t.Files) == in.SHA256 {
			return t.Files
		}
	}
	return nil
}

// combined is the digest of a model of files.
func combined(files []report.File) string {
	var names, sums []string
	for _, f := range files {
		names, sums = append(names, f.Name), append(sums, f.SHA256)
	}
	return onnx.Combined(names, sums)
}

// model compares the files of a model that the report calls f, if all of them are there.
func (v *verifier) model(f report.File, parts []report.File) error {
	found := slices.Clone(parts)
	for i, p := range parts {
		name := path.Join(path.Dir(f.Name), p.Name)
		sum, _, err := v.Digest(v.ctx, v.nameOf(name))
		if errors.Is(err, fs.ErrNotExist) {
			v.res.Unchecked = append(v.res.Unchecked, name+": not here")
			return nil
		}
		if err != nil {
			return err
		}
		found[i].SHA256 = sum
	}
	v.compare(v.nameOf(f.Name), f, combined(found), f.Bytes)
	v.res.Checked = append(v.res.Checked, f.Name)
	return nil
}

// folder compares a folder of samples, whose digest is that of the list of its files. It reports whether names, those
// of all files, has some in it.
func (v *verifier) folder(f report.File, names []string) (bool, error) {
	var inside, sums []string
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, v.nameOf(f.Name)+"/")
		if !ok {
			continue
		}
		sum, _, err := v.Digest(v.ctx, name)
		if err != nil {
			return true, err
		}
		inside, sums = append(inside, rest), append(sums, sum)
	}
	if len(inside) == 0 {
		return false, nil
	}
	v.compare(v.nameOf(f.Name), f, onnx.Combined(inside, sums), f.Bytes)
	v.res.Checked = append(v.res.Checked, f.Name)
	return true, nil
}

// packed compares files with those in the packed model of names, NAME.mcz for the model NAME.onnx. It reports whether
// there is one.
func (v *verifier) packed(files []report.File, names []string) (bool, error) {
	name := report.Stem(v.res.Model) + ".mcz"
	if len(files) == 0 || name == v.res.Model || !slices.Contains(names, name) {
		return false, nil
	}
	v.res.Files = append(v.res.Files, name)
	if !slices.Contains(names, v.res.Model) {
		v.res.Model = name
	}
	members, err := v.Packed(v.ctx, name)
	if errors.Is(err, ErrAbsent) {
		v.res.Unchecked = append(v.res.Unchecked, name+": "+err.Error())
		return true, nil
	}
	if err != nil {
		return true, err
	}
	for _, f := range files {
		i := slices.IndexFunc(members, func(m report.File) bool { return m.Name == f.Name })
		if i < 0 {
			v.res.mismatch(name, "it has no file %s; the report names it", f.Name)
			continue
		}
		v.compare(name+": "+f.Name, f, members[i].SHA256, members[i].Bytes)
	}
	v.res.Checked = append(v.res.Checked, name)
	return true, nil
}

// file compares a file. The size is compared unless it is negative.
func (v *verifier) file(f report.File, required bool) error {
	sum, size, err := v.Digest(v.ctx, v.nameOf(f.Name))
	switch {
	case errors.Is(err, fs.ErrNotExist) && required:
		v.res.mismatch(v.nameOf(f.Name), "no such file; the report names it")
		return nil
	case errors.Is(err, fs.ErrNotExist):
		v.res.Unchecked = append(v.res.Unchecked, f.Name+": not here")
		return nil
	case err != nil:
		return err
	}
	v.compare(v.nameOf(f.Name), f, sum, size)
	v.res.Checked = append(v.res.Checked, f.Name)
	return nil
}

// compare compares digest and size of what is called name with those of f.
func (v *verifier) compare(name string, f report.File, sum string, size int64) {
	switch {
	case f.SHA256 == "":
		v.res.mismatch(name, "the report has no SHA-256 of it")
	case sum != f.SHA256:
		v.res.mismatch(name, "the SHA-256 is %s, the report has %s", sum, f.SHA256)
	}
	if f.Bytes >= 0 && size != f.Bytes {
		v.res.mismatch(name, "%d bytes, the report has %d", size, f.Bytes)
	}
}

// graph compares the metadata and the graph of the model with the report.
func (v *verifier) graph(r *report.Report) error {
	if v.res.Model == "" || !v.res.Matches() {
		return nil // another file, whose differences explain nothing
	}
	m, err := v.Model(v.ctx, v.res.Model)
	switch {
	case errors.Is(err, ErrAbsent):
		v.res.Unchecked = append(v.res.Unchecked, "metadata of the model: "+err.Error())
		return nil
	case err != nil:
		return err
	}
	v.metadata(r, m.IR.Meta)
	lines, err := r.InconsistenciesWith(v.ctx, m)
	for _, line := range lines {
		v.res.mismatch(v.res.Model, "%s", line)
	}
	v.res.Checked = append(v.res.Checked, "graph")
	return err
}

// metadata compares the metadata of the model with the report. What the model states of its run has to be in the report,
// too: else a report could be relieved of a part that can be compared.
func (v *verifier) metadata(r *report.Report, meta []ir.Entry) {
	got, want := map[string]string{}, map[string]string{}
	keys := []string{report.KeyVersion, report.KeyRecipe, report.KeySource}
	for _, e := range meta {
		if slices.Contains(keys, e.Key) {
			got[e.Key] = e.Value
		}
	}
	switch {
	case r.Recipe != nil && r.Changes():
		want[report.KeyRecipe] = r.Recipe.SHA256
		// The metadata of a model whose source was not digested has no digest of it.
		if !slices.ContainsFunc(r.Source.Files, func(f report.File) bool { return f.SHA256 == "" }) {
			want[report.KeySource] = combined(r.Source.Files)
		}
		want[report.KeyVersion] = r.Tool.Version
	case len(got) == 0:
		return
	case copied(r):
		v.res.Unchecked = append(v.res.Unchecked, "metadata of the model: they are those of the source, of which it is a copy")
		return
	// The report of a run has the name of the model, that of a comparison the names of both.
	case r.Compared() && v.res.Report != report.Stem(v.res.Model)+report.JSONSuffix:
		v.res.Unchecked = append(v.res.Unchecked, "metadata of the model: the report is a comparison of two files, not that of "+
			"the run which made the model")
		return
	}
	for _, key := range keys {
		if got[key] != want[key] {
			v.res.mismatch(v.res.Model, "metadata %s is %q, the report has %q", key, got[key], want[key])
		}
	}
	v.res.Checked = append(v.res.Checked, "metadata")
}

// copied reports whether the result is a copy of the source, as that of a run that changes nothing is: one file with the
// same content, or several, which refer to each other by their names.
func copied(r *report.Report) bool {
	return !r.Changes() && (len(r.Source.Files) > 1 || r.Result.Files[0].SHA256 == r.Source.Files[0].SHA256)
}
