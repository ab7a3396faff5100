package mcompress

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/untrusted"
	"github.com/mcompress/mcompress/registry"
)

// stored is the artifact that a model of the list names; nil for a path.
func (x *run) stored(ctx context.Context, model string) (*registry.Stored, error) {
	if !registry.IsReference(model) {
		return nil, nil
	}
	ref, err := registry.Parse(model)
	if err != nil {
		return nil, err
	}
	x.Registry.warnInsecure(ref, x.Events)
	return registry.List(ctx, ref, x.Registry.options())
}

// A pulledModel is a model of a registry on disk, in a folder of its own.
type pulledModel struct {
	folder    string
	temporary *atomicfile.Folder // that of a dry run; nil otherwise
	model     string             // path
}

// pull downloads the files of a model, without its reports, into a folder next to the result. What an interrupted run
// downloaded is used.
func (x *run) pull(ctx context.Context, m listed, s *registry.Stored) (_ *pulledModel, err error) {
	// In the folder of the journal, so that both are kept and removed together.
	p := &pulledModel{folder: pulledTo(m.output)}
	if x.DryRun {
		if p.temporary, err = atomicfile.NewFolder(""); err != nil {
			return nil, err
		}
		p.folder = p.temporary.Path
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.leave(ctx, err))
		}
	}()
	file, ok := s.Find(registry.Model)
	if !ok {
		return nil, fmt.Errorf("%s: the artifact has no ONNX model", m.model)
	}
	s.Files = slices.DeleteFunc(slices.Clone(s.Files), func(f registry.File) bool {
		return f.Role != registry.Model && f.Role != registry.Data && f.Role != registry.Config
	})
	o := x.Registry.options()
	var end func()
	o.Progress, end = x.Events.stage(s.Reference.Name, StageTransfer)
	defer end()
	o.Overwrite = true // by another artifact, to which the tag was moved after an interruption
	if _, err := s.Pull(ctx, p.folder, o); err != nil {
		return nil, err
	}
	p.model, err = untrusted.Path(p.folder, file.Name)
	return p, err
}

// leave removes the folder, unless repeating a run that ended with this error may help.
func (p *pulledModel) leave(ctx context.Context, err error) error {
	// A dry run is not continued.
	if p.temporary != nil {
		return p.temporary.Close()
	}
	if repeatable(ctx, err) {
		return nil
	}
	if err := os.RemoveAll(p.folder); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(p.folder)) // fails if it has more
	return nil
}
