package registry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/internal/folder"
	"github.com/mcompress/mcompress/registry/internal/transfer"
	"github.com/mcompress/mcompress/report"
)

// The layout of a repository of the Hugging Face Hub that Optimum and transformers.js load: models are in a folder,
// configuration is in the root.
const (
	hubFolder = "onnx"
	hubModel  = "model.onnx"
)

// pushHub writes a folder for `hf upload`: the model card README.md, which is made from the report, configuration, and
// in "onnx" the model and its reports.
func pushHub(ctx context.Context, ref Reference, a *Artifact, o Options) (_ *Pushed, err error) {
	// Made elsewhere and then copied like a download: after an error the repository is as it was.
	temporary, err := atomicfile.NewFolder("")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temporary.Close()) }()
	h := &hub{artifact: a, card: o.Card, dir: temporary.Path}
	if err := h.files(ctx); err != nil {
		return nil, err
	}
	return h.push(ctx, ref, o)
}

// push copies the files.
func (h *hub) push(ctx context.Context, ref Reference, o Options) (*Pushed, error) {
	local := &Stored{Reference: ref, Digest: ref, Files: h.list, open: openPath}
	p, err := local.Pull(ctx, ref.Name, o)
	if err != nil {
		return nil, err
	}
	return &Pushed{ref, ref, p.Downloaded, p.Size, p.Files}, nil
}

// PushVariants writes a folder for `hf upload` from a folder whose folder "onnx" has models under the names that
// transformers.js loads: the sources, the variants with their reports, the files of the folder itself, such as
// configuration, and a model card of all variants. o.Card has their dtypes.
func PushVariants(
	ctx context.Context,
	ref Reference,
	dir string,
	sources, variants []string,
	o Options,
) (_ *Pushed, err error) {
	if ref.Scheme != schemeHub {
		return nil, &ReferenceError{ref.String(), errors.New("variants are pushed to hf:DIR")}
	}
	temporary, err := atomicfile.NewFolder("")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temporary.Close()) }()
	h := &hub{card: o.Card, dir: temporary.Path}
	if err := h.configuration(ctx, dir); err != nil {
		return nil, err
	}
	var reports []*report.Report
	for _, model := range slices.Concat(sources, variants) {
		if h.artifact, err = Collect(ctx, model, CollectOptions{}); err != nil {
			return nil, err
		}
		for _, f := range h.artifact.Files {
			// Others are in h.list already.
			if f.Role != Card && f.Role != ReportPage && filepath.Dir(f.Path) == filepath.Dir(model) {
				f.Name = hubFolder + "/" + f.Name
				h.list = append(h.list, f)
			}
		}
		if slices.Contains(variants, model) {
			r, err := h.report()
			if err != nil {
				return nil, err
			}
			reports = append(reports, r)
		}
	}
	if err := h.addCard(ctx, reports...); err != nil {
		return nil, err
	}
	return h.push(ctx, ref, o)
}

// configuration adds the files in a folder and those below it, such as those of modules, besides hidden ones, the
// models and the card of the source.
func (h *hub) configuration(ctx context.Context, dir string) error {
	root := os.DirFS(dir)
	return fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (name == hubFolder || name != "." && strings.HasPrefix(e.Name(), ".")):
			return fs.SkipDir
		case e.Type()&fs.ModeSymlink != 0 && !strings.HasPrefix(e.Name(), "."):
			return &folder.LinkError{Path: filepath.Join(dir, filepath.FromSlash(name))}
		case !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") || name == readme:
			return nil
		}
		f := File{Name: name, Path: filepath.Join(dir, filepath.FromSlash(name)), Role: Config}
		if err := f.sum(ctx, transfer.NewMeter(0, nil)); err != nil {
			return err
		}
		h.list = append(h.list, f)
		return nil
	})
}

// addCard makes the model card.
func (h *hub) addCard(ctx context.Context, reports ...*report.Report) error {
	h.card.Folder = hubFolder
	text, err := h.made(ctx, readme, Card, func(w io.Writer) error { return h.card.Write(w, reports...) })
	h.list = append(h.list, text)
	return err
}

// A hub is the files of a repository.
type hub struct {
	artifact *Artifact
	card     report.Card
	dir      string // of the files that are made
	list     []File
}

// files lists the files. Reports are made anew for a model that gets another name.
func (h *hub) files(ctx context.Context) error {
	r, err := h.report()
	if err != nil {
		return err
	}
	model, err := h.artifact.Model()
	if err != nil {
		return err
	}
	name := model.Name
	if h.renamed(name) {
		// The report and what is signed of it are about a file of another name then.
		name = hubModel
		if r, err = r.Renamed(ctx, name); err != nil {
			return err
		}
	}
	for _, f := range h.artifact.Files {
		c := slices.IndexFunc(companions, func(c companion) bool { return c.role == f.Role })
		switch {
		case f.Role == Config:
		case f.Role == Card || f.Role == ReportPage:
			continue
		case f.Role == Model:
			f.Name = hubFolder + "/" + name
		case c >= 0 && name != model.Name:
			if f, err = h.made(ctx, hubFolder+"/"+report.Stem(name)+companions[c].suffix, f.Role, func(w io.Writer) error {
				return h.write(w, companions[c].suffix, r)
			}); err != nil {
				return err
			}
		default:
			f.Name = hubFolder + "/" + f.Name
		}
		h.list = append(h.list, f)
	}
	return h.addCard(ctx, r)
}

// renamed reports whether the model is to be called model.onnx. Names of variants stay; so do those of a packed model,
// of a model with external data, which contains the names of its files, and of a signed one.
func (h *hub) renamed(name string) bool {
	stem, unpacked := strings.CutSuffix(name, ".onnx")
	return unpacked && stem != "model" && !strings.HasPrefix(stem, "model_") &&
		!slices.ContainsFunc(h.artifact.Files, func(f File) bool { return f.Role == Data || f.Role == Signature })
}

// report reads the report, and the other content of an existing card.
func (h *hub) report() (*report.Report, error) {
	f, ok := h.artifact.Find(ReportJSON)
	if !ok {
		model, _ := h.artifact.Model()
		return nil, &ContentError{model.Name, errors.New("without a report (NAME.report.json) there is no model card")}
	}
	in, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	r, err := report.Read(in)
	if err != nil {
		return nil, &ContentError{f.Path, err}
	}
	for _, f := range h.artifact.Files {
		if f.Role == Card && f.Name != readme {
			if err := h.adopt(f.Path); err != nil {
				return nil, &ContentError{f.Path, err}
			}
		}
	}
	return r, nil
}

// maxCard is the maximum size of a model card in bytes.
const maxCard = 16 << 20

// adopt takes the base model and the task from a card where they are not given.
func (h *hub) adopt(path string) error {
	text, err := bounded.ReadFile(path, maxCard)
	if err != nil {
		return err
	}
	head, _, _ := bytes.Cut(bytes.TrimPrefix(text, []byte("---\n")), []byte("\n---\n"))
	var meta struct {
		Base string `yaml:"base_model"`
		Task string `yaml:"pipeline_tag"`
	}
	if err := bounded.YAML(head, &meta); err != nil {
		return err
	}
	if h.card.BaseModel == "" {
		h.card.BaseModel = meta.Base
	}
	if h.card.PipelineTag == "" {
		h.card.PipelineTag = meta.Task
	}
	return h.card.Check()
}

// made writes a file.
func (h *hub) made(ctx context.Context, name string, role Role, write func(io.Writer) error) (File, error) {
	f := File{Name: name, Path: filepath.Join(h.dir, filepath.Base(name)), Role: role}
	if err := atomicfile.Write(f.Path, atomicfile.Access{}, write); err != nil {
		return f, err
	}
	return f, f.sum(ctx, transfer.NewMeter(0, nil))
}

// write writes a report in the form that has a suffix.
func (h *hub) write(w io.Writer, suffix string, r *report.Report) error {
	all := report.Formats()
	i := slices.IndexFunc(all, func(f report.Format) bool { return f.Suffix == suffix })
	return all[i].Write(r, w, h.card)
}

// listHub lists the files of the only model in the folder "onnx".
func listHub(ctx context.Context, ref Reference, o Options) (*Stored, error) {
	s, err := listDir(ctx, Reference{Scheme: schemeDir, Name: filepath.Join(ref.Name, hubFolder)}, o)
	if err != nil {
		return nil, err
	}
	s.Digest = ref
	return s, nil
}
