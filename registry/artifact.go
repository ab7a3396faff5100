package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mcompress/mcompress/internal/untrusted"
)

// A Role is the purpose of a file of an artifact.
type Role string

// The roles. An artifact has one model; reports and everything after them are optional.
const (
	Model      Role = "model"       // the ONNX file
	Data       Role = "data"        // external data of the model
	Config     Role = "config"      // configuration or tokenizer next to the model
	ReportJSON Role = "report-json" // the report
	ReportText Role = "report-md"   // the report as Markdown
	ReportPage Role = "report-html" // the report as a page
	BOM        Role = "bom"         // the bill of materials (CycloneDX ML-BOM)
	Provenance Role = "provenance"  // an in-toto statement (SLSA provenance)
	Signature  Role = "signature"   // of the files (Sigstore bundle)
	Card       Role = "card"        // the model card
	Other      Role = "other"       // a file of an artifact of another tool
)

// A File is a file of an artifact.
type File struct {
	Name   string `json:"name"`   // path inside the artifact, with slashes
	Path   string `json:"-"`      // on disk; empty for a file in a registry
	Size   int64  `json:"bytes"`  // bytes
	SHA256 string `json:"sha256"` // 64 hexadecimal digits
	Role   Role   `json:"role"`
}

// Key is text for the name of a file: two files of an artifact may have the same content.
func (f File) Key() string {
	name := sha256.Sum256([]byte(f.Name))
	return f.SHA256[:32] + "-" + hex.EncodeToString(name[:4])
}

// An Artifact is the files that are pushed together: the model, its external data in order of first use, and then the
// others in the order of the roles.
type Artifact struct {
	Files []File
}

// Size is the number of bytes of all files.
func (a *Artifact) Size() int64 { return size(a.Files) }

// checkFiles returns a *ContentError unless the files are ones that can be below one folder, with digests and sizes. An
// artifact of a registry is not trusted: its names and digests become parts of paths.
func checkFiles(files []File) error {
	names, all := make([]string, len(files)), int64(0)
	for i, f := range files {
		names[i] = f.Name
		if err := untrusted.CheckSHA256(f.SHA256); err != nil {
			return &ContentError{f.Name, err}
		}
		if f.Size < 0 || f.Size > math.MaxInt64-all {
			return &ContentError{f.Name, fmt.Errorf("a file of %d bytes", f.Size)}
		}
		all += f.Size
	}
	return checkNames(names)
}

// checkNames returns a *ContentError unless the names are those of files that can be below one folder.
func checkNames(names []string) error {
	var wrong *untrusted.NameError
	if errors.As(untrusted.CheckNames(names), &wrong) {
		return &ContentError{fmt.Sprintf("file name %q", wrong.Name), wrong.Err}
	}
	return nil
}

func size(files []File) int64 {
	n := int64(0)
	for _, f := range files {
		n += f.Size
	}
	return n
}

// Find returns the first file of the role. It reports false if there is none.
func (a *Artifact) Find(r Role) (File, bool) { return find(a.Files, r) }

func find(files []File, r Role) (File, bool) {
	i := slices.IndexFunc(files, func(f File) bool { return f.Role == r })
	if i < 0 {
		return File{}, false
	}
	return files[i], true
}

// Model returns the ONNX file.
func (a *Artifact) Model() (File, error) {
	f, ok := a.Find(Model)
	if !ok {
		return f, errors.New("the artifact has no ONNX model")
	}
	return f, nil
}
