package job

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/digest"
	"github.com/mcompress/mcompress/internal/pack"
	"github.com/mcompress/mcompress/onnx"
	"github.com/mcompress/mcompress/report"
)

// isPacked reports whether an output of that path is packed.
func isPacked(path string) bool { return strings.HasSuffix(path, ".mcz") }

// modelName is the name of the model at path, or in the packed file at path.
func modelName(path string) string {
	if isPacked(path) {
		path = report.Stem(path) + ".onnx"
	}
	return filepath.Base(path)
}

// stagingSet are the set and the path of the model that is packed into the result. The set is never published.
func (r *run) stagingSet() (*atomicfile.Set, string, error) {
	dir, err := r.set.Folder(r.path)
	return &atomicfile.Set{Access: r.set.Access}, filepath.Join(dir, modelName(r.path)), err
}

// packFiles packs the files of out into the result.
func (r *run) packFiles(ctx context.Context, out *onnx.File) ([]report.File, error) {
	err := r.set.WriteFile(r.path, func(w io.Writer) error {
		_, err := pack.Write(ctx, w, FilesToPack(out), pack.Options{Workers: r.Workers, Memory: r.Memory})
		return err
	})
	if err != nil {
		return nil, err
	}
	dir, err := r.set.Folder(r.path)
	if err != nil {
		return nil, err
	}
	f := report.File{Name: filepath.Base(r.path)}
	path := filepath.Join(dir, f.Name)
	if r.Digest {
		f.SHA256, f.Bytes, err = digest.File(ctx, path, nil)
		return []report.File{f}, err
	}
	st, err := os.Stat(path)
	if err == nil {
		f.Bytes = st.Size()
	}
	return []report.File{f}, err
}

// FilesToPack are the files of a model with the places of its tensors.
func FilesToPack(f *onnx.File) []pack.File {
	var files []pack.File
	for _, p := range f.Parts() {
		files = append(files, pack.File{Name: filepath.ToSlash(p.Name), Size: p.Size, R: p})
	}
	for _, p := range f.Payloads() {
		files[p.Part].Tensors = append(files[p.Part].Tensors, pack.Tensor{Spec: p.Spec, Offset: p.Offset})
	}
	return files
}
