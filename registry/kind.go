package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A Kind is a kind of registry. Its functions are called with references of its scheme.
type Kind struct {
	Parse func(rest string) (Reference, error) // the text after SCHEME:, as a reference without the scheme

	// Check returns an error if ref cannot be pushed to, as far as that is known without the files: host, credentials,
	// permission.
	Check func(ctx context.Context, ref Reference, o Options) error

	// Push uploads the files that the registry does not have. What makes them visible as ref, such as the tag, is last,
	// so that a push can be repeated after an interruption. *ConflictError unless o.Overwrite if ref exists with other
	// content.
	Push func(ctx context.Context, ref Reference, a *Artifact, o Options) (*Pushed, error)

	// List returns the files of ref without reading them.
	List func(ctx context.Context, ref Reference, o Options) (*Stored, error)

	// Move lets a tag or alias name what ref names now, and returns its reference. Nil if the kind has none.
	Move func(ctx context.Context, ref Reference, alias string, o Options) (Reference, error)
}

// The schemes that this package knows.
const (
	schemeOCI    = "oci"
	schemeMLflow = "mlflow"
	schemeHub    = "hf"
	schemeDir    = "dir"
)

// imported are the kinds of registries whose clients are packages of their own, so that programs without them do not
// link them.
var imported = map[string]string{schemeOCI: "OCI registries", schemeMLflow: "MLflow"}

// folders are the kinds that need no client.
var folders = map[string]Kind{
	schemeHub: {Parse: parseFolder, Check: checkDir, Push: pushHub, List: listHub},
	schemeDir: {Parse: parseFolder, Check: checkDir, Push: pushDir, List: listDir},
}

var kinds sync.Map // of the kinds that are registered, by scheme

// Register registers the kind of registry whose references begin with a scheme, usually as the package of its client is
// initialized. Errors of a kind are those of this package: *TransferError, *ContentError, *ConflictError and
// *ReferenceError.
func Register(scheme string, k Kind) { kinds.Store(scheme, k) }

func registered(scheme string) (Kind, bool) {
	if k, ok := folders[scheme]; ok {
		return k, true
	}
	k, ok := kinds.Load(scheme)
	if !ok {
		return Kind{}, false
	}
	return k.(Kind), true
}

// kindOf is the kind of a scheme. An error names the reference text.
func kindOf(scheme, text string) (Kind, error) {
	if k, ok := registered(scheme); ok {
		return k, nil
	}
	if what, ok := imported[scheme]; ok {
		return Kind{}, &ReferenceError{text, fmt.Errorf(
			`this program has no client of %s: import _ "github.com/mcompress/mcompress/registry/%s"`, what, scheme,
		)}
	}
	return Kind{}, &ReferenceError{
		text,
		errors.New("use oci://HOST/REPOSITORY:TAG, mlflow://HOST/NAME, hf:DIR or dir:DIR"),
	}
}
