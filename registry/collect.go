package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/folder"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/registry/internal/reported"
	"github.com/mcompress/mcompress/registry/internal/transfer"
	"github.com/mcompress/mcompress/report"
)

// readme is the model card of a folder.
const readme = "README.md"

// maxConfig is the size in bytes above which a file next to a model has weights.
const maxConfig = 64 << 20

// A companion is a kind of file that belongs to NAME.onnx, with the end of its name after NAME.
type companion struct {
	suffix string
	role   Role
}

// companions are in the order of an artifact.
var companions = []companion{
	{report.JSONSuffix, ReportJSON},
	{".report.md", ReportText},
	{".report.html", ReportPage},
	{".cdx.json", BOM},
	{".intoto.json", Provenance},
	{".sig", Signature},
	{".card.md", Card},
}

// RoleOf is the role of a file that belongs to a model, by its name: NAME.report.json and the others that Collect
// lists, and README.md; Other for other names.
func RoleOf(name string) Role {
	for _, c := range companions {
		if strings.HasSuffix(name, c.suffix) {
			return c.role
		}
	}
	if path.Base(name) == readme {
		return Card
	}
	return Other
}

// CollectOptions are the options of Collect.
type CollectOptions struct {
	ReportDir string                  // folder of the reports; empty for that of the model
	Progress  func(done, total int64) // bytes that are digested; may be nil
}

// Collect lists the files of an artifact: the model at path, its external data, and the files that belong to it:
// NAME.report.json, NAME.report.md, NAME.report.html, NAME.cdx.json, NAME.intoto.json, NAME.sig and NAME.card.md. It
// reads every file once, for its digest. A report that names other digests of the model's files is a *ContentError: it
// describes another model.
func Collect(ctx context.Context, path string, o CollectOptions) (*Artifact, error) {
	a := &Artifact{}
	packed, err := a.addModel(ctx, path)
	if err != nil {
		return nil, err
	}
	// The report is compared with the files of the model alone.
	parts := len(a.Files)
	if err := a.addFolder(path); err != nil {
		return nil, err
	}
	if err := a.addCompanions(path, cmp.Or(o.ReportDir, filepath.Dir(path))); err != nil {
		return nil, err
	}
	// Before gigabytes are digested: what pull would refuse is not pushed.
	names := make([]string, len(a.Files))
	for i, f := range a.Files {
		names[i] = f.Name
	}
	if err := checkNames(names); err != nil {
		return nil, err
	}
	m := transfer.NewMeter(a.Size(), o.Progress)
	for i := range a.Files {
		if err := a.Files[i].sum(ctx, m); err != nil {
			return nil, err
		}
	}
	return a, a.checkReport(a.Files[:parts], packed)
}

// addModel adds the model and its external data. A packed model is one file; those in it are returned with their
// digests.
func (a *Artifact) addModel(ctx context.Context, path string) (packed []File, err error) {
	f, err := onnx.OpenContext(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	paths := f.Paths()
	if f.Packed() {
		st, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		a.Files = append(a.Files, File{Name: filepath.Base(path), Path: path, Size: st.Size(), Role: Model})
		for _, p := range f.Parts() {
			sum, err := p.SHA256(ctx)
			if err != nil {
				return nil, err
			}
			packed = append(packed, File{Name: p.Name, Size: p.Size, SHA256: sum})
		}
		return packed, nil
	}
	for i, p := range f.Parts() {
		role := Data
		if i == 0 {
			role = Model
		}
		a.Files = append(a.Files, File{Name: p.Name, Path: paths[i], Size: p.Size, Role: role})
	}
	return nil, nil
}

// addFolder adds the files that a model in a folder with configuration needs besides its own.
func (a *Artifact) addFolder(model string) error {
	root := folder.Root(model)
	names, err := folder.Files(root, model)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(root, name)
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		role := Config
		switch {
		case strings.HasSuffix(name, ".onnx") || st.Size() > maxConfig:
			role = Data
		case name == readme:
			role = Card
		}
		a.Files = append(a.Files, File{Name: filepath.ToSlash(name), Path: path, Size: st.Size(), Role: role})
	}
	return nil
}

// addCompanions adds the files that belong to the model and exist.
func (a *Artifact) addCompanions(model, dir string) error {
	stem := report.Stem(filepath.Base(model))
	for _, c := range companions {
		path := filepath.Join(dir, stem+c.suffix)
		st, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case !st.Mode().IsRegular():
			return &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
		}
		a.Files = append(a.Files, File{Name: stem + c.suffix, Path: path, Size: st.Size(), Role: c.role})
	}
	return nil
}

// sum sets the digest, and the size as read.
func (f *File) sum(ctx context.Context, m *transfer.Meter) (err error) {
	f.SHA256, f.Size, err = digest.File(ctx, f.Path, m)
	return err
}

// checkReport compares the digests of the model's files with those in the report, which may be of the files in a packed
// model.
func (a *Artifact) checkReport(parts, packed []File) error {
	report, ok := a.Find(ReportJSON)
	if !ok {
		return nil
	}
	listed, err := reportedFiles(report.Path)
	if err != nil {
		return &ContentError{report.Path, err}
	}
	// A report made after packing names the packed file, one made before it the files inside.
	if packed != nil && !slices.ContainsFunc(listed, func(l File) bool { return l.Name == parts[0].Name }) {
		parts = packed
	}
	for _, f := range parts {
		i := slices.IndexFunc(listed, func(l File) bool { return l.Name == f.Name })
		switch {
		case i < 0:
			return &ContentError{
				report.Path,
				fmt.Errorf("the report does not name %s: it describes another model", f.Name),
			}
		case listed[i].SHA256 != "" && listed[i].SHA256 != f.SHA256:
			return &ContentError{
				report.Path,
				fmt.Errorf(
					"the report names SHA-256 %.12s… for %s, which has %.12s…: it describes another model",
					listed[i].SHA256,
					f.Name,
					f.SHA256,
				),
			}
		}
	}
	return nil
}

// reportedFiles are the files of the result in a report. Reports of large models have hundreds of megabytes: everything
// else is skipped.
func reportedFiles(path string) ([]File, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return decodeReported(r)
}

func decodeReported(r io.Reader) ([]File, error) {
	var result struct{ Files []File }
	err := reported.Decode(r, map[string]any{"result": &result})
	if err == nil && result.Files == nil {
		err = errors.New("not a report: it has no result")
	}
	return result.Files, err
}
