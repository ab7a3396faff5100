package mlflow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcompress/mcompress/internal/bounded"
	"github.com/mcompress/mcompress/registry"
)

// manifestName is the file of a logged model that lists the others with their digests, as MLflow does not. Its own
// digest is a tag of the version.
const manifestName = "mcompress-manifest.json"

// maxManifest is the maximum size of that file in bytes, which is read into memory.
const maxManifest = 4 << 20

// A fileList lists files.
type fileList struct {
	Files []registry.File `json:"files"`
}

// list reads the manifest of a version.
func list(ctx context.Context, ref registry.Reference, o registry.Options) (*registry.Stored, error) {
	m, err := open(ref, o)
	if err != nil {
		return nil, err
	}
	v, err := m.version(ctx)
	if err != nil {
		return nil, err
	}
	if versionNumber(v.Version) < 1 {
		return nil, &registry.ContentError{What: ref.String(), Err: fmt.Errorf("version %q is not a number", v.Version)}
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
	text, err := m.read(ctx, folder+"/"+manifestName, digest)
	if err != nil {
		return nil, err
	}
	var manifest fileList
	if err := bounded.JSON(text, &manifest); err != nil {
		return nil, &registry.ContentError{What: manifestName, Err: err}
	}
	open := func(ctx context.Context, f registry.File, from int64) (io.ReadCloser, int64, error) {
		return m.download(ctx, folder+"/"+f.Name, f, from)
	}
	return registry.NewStored(m.numbered(v.Version), manifest.Files, open), nil
}

// folder is where the server has the artifacts of a version.
func (m *client) folder(ctx context.Context, v *modelVersion) (string, error) {
	id := v.ModelID
	if id == "" {
		id, _ = strings.CutPrefix(v.Source, "models:/")
	}
	var out struct{ Model loggedModel }
	// Escaped, as the server could name an address of another service of its host, which would get the credentials.
	err := m.call(ctx, http.MethodGet, "logged-models/"+url.PathEscape(id), nil, &out)
	if isCode(err, doesNotExist) {
		return "", m.refused(fmt.Errorf("the logged model of version %s is deleted", v.Version))
	}
	if err != nil {
		return "", err
	}
	return m.proxied(out.Model.Info.Location)
}

// read returns a text of the given digest.
func (m *client) read(ctx context.Context, path, digest string) ([]byte, error) {
	content, _, err := m.download(ctx, path, registry.File{Name: manifestName, Size: -1}, 0)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(content, maxManifest+1))
	if err = errors.Join(err, content.Close()); err != nil {
		return nil, m.failed(ctx, err)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != digest {
		return nil, &registry.ContentError{
			What: manifestName,
			Err:  fmt.Errorf("SHA-256 is %x…, but the tag %s is %.12s…", sum[:6], tagDigest, digest),
		}
	}
	return text, nil
}
