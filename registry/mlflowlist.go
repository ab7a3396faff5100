package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// manifestName is the file of a logged model that lists the others with their digests, as MLflow does not. Its own
// digest is a tag of the version.
const manifestName = "mcompress-manifest.json"

// An mlflowManifest lists files.
type mlflowManifest struct {
	Files []File `json:"files"`
}

// listMLflow reads the manifest of a version.
func listMLflow(ctx context.Context, ref Reference, o Options) (*Stored, error) {
	m, err := openMLflow(ref, o)
	if err != nil {
		return nil, err
	}
	v, err := m.version(ctx)
	if err != nil {
		return nil, err
	}
	digest := v.tag(tagDigest)
	if digest == "" {
		return nil, m.refused(
			fmt.Errorf("version %s was not pushed by mcompress: it has no tag %s", v.Version, tagDigest),
		)
	}
	folder, err := m.folder(ctx, v)
	if err != nil {
		return nil, err
	}
	s := &Stored{
		Digest: m.numbered(v.Version),
		open: func(ctx context.Context, f File, from int64) (io.ReadCloser, int64, error) {
			return m.download(ctx, folder+"/"+f.Name, f, from)
		},
	}
	text, err := m.read(ctx, folder+"/"+manifestName, digest)
	if err != nil {
		return nil, err
	}
	var manifest mlflowManifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, &ContentError{manifestName, err}
	}
	s.Files = manifest.Files
	return s, nil
}

// folder is where the server has the artifacts of a version.
func (m *mlflow) folder(ctx context.Context, v *modelVersion) (string, error) {
	id := v.ModelID
	if id == "" {
		id, _ = strings.CutPrefix(v.Source, "models:/")
	}
	var out struct{ Model loggedModel }
	err := m.call(ctx, http.MethodGet, "logged-models/"+id, nil, &out)
	if isCode(err, doesNotExist) {
		return "", m.refused(fmt.Errorf("the logged model of version %s is deleted", v.Version))
	}
	if err != nil {
		return "", err
	}
	return m.proxied(out.Model.Info.Location)
}

// read returns a text of the given digest.
func (m *mlflow) read(ctx context.Context, path, digest string) ([]byte, error) {
	content, _, err := m.download(ctx, path, File{Name: manifestName, Size: -1}, 0)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(content, maxManifest+1))
	if err = errors.Join(err, content.Close()); err != nil {
		return nil, m.failed(ctx, err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != digest {
		return nil, &ContentError{
			manifestName,
			fmt.Errorf("SHA-256 is %x…, but the tag %s is %.12s…", sum[:6], tagDigest, digest),
		}
	}
	return text, nil
}
