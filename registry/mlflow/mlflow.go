package mlflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/registry/internal/transfer"
)

// The names that mcompress gives tags in MLflow. The digest is that of the manifest: two versions with the same one
// have the same files.
const (
	tagDigest   = "mcompress.digest"
	tagUploaded = "mcompress.uploaded" // of a logged model: files that are complete
)

// defaultExperiment is the experiment of the runs that log models, unless MLFLOW_EXPERIMENT_NAME names another one.
const defaultExperiment = "mcompress"

// latestAlias is the alias of the latest version, which MLflow reserves.
const latestAlias = "latest"

var (
	aliasForm   = regexp.MustCompile(`^[\w-]{1,255}$`)
	versionForm = regexp.MustCompile(`^[vV][1-9][0-9]*$`) // MLflow reserves these names, so that they are no aliases
)

func init() {
	registry.Register(scheme, registry.Kind{Parse: parse, Check: check, Push: push, List: list, Move: move})
}

// scheme is that of references.
const scheme = "mlflow"

// parse parses //HOST/NAME, //HOST/NAME@ALIAS and //HOST/NAME@vVERSION. The host may have a port and a path: the
// prefix of the server at a proxy. The rules for names are those of MLflow 3.
func parse(rest string) (registry.Reference, error) {
	rest, found := strings.CutPrefix(rest, "//")
	slash := strings.LastIndex(rest, "/")
	if !found || slash < 1 {
		return registry.Reference{}, errors.New("use mlflow://HOST/NAME or mlflow://HOST/NAME@ALIAS")
	}
	name, alias, aliased := strings.Cut(rest[slash+1:], "@")
	ref := registry.Reference{Host: strings.Trim(rest[:slash], "/"), Name: name, Tag: alias}
	switch {
	case name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r < ' ' || strings.ContainsRune(`:"'`+"`", r)
	}):
		return registry.Reference{}, fmt.Errorf("not the name of a registered model: %q", name)
	case aliased && !aliasForm.MatchString(alias):
		return registry.Reference{}, fmt.Errorf("not an alias: %q; an alias has letters, digits, - and _", alias)
	case ref.Host == "" || strings.ContainsAny(ref.Host, "@?# "):
		return registry.Reference{}, fmt.Errorf("not a host: %q", rest[:slash])
	}
	return ref, nil
}

// A client is a registered model of an MLflow tracking server (MLflow 3, REST API 2.0).
type client struct {
	http *http.Client
	base string // without a slash at the end
	auth string // the header Authorization; empty for none
	ref  registry.Reference
	o    registry.Options
}

// open returns the client for ref. Credentials are those of the environment, in the order of MLflow's own client.
func open(ref registry.Reference, o registry.Options) (*client, error) {
	host, _, _ := strings.Cut(ref.Host, "/")
	protocol, err := transfer.Scheme(host, o.PlainHTTP)
	if err != nil {
		return nil, &registry.ReferenceError{Reference: ref.String(), Err: err}
	}
	m := &client{http: transfer.Client(o.Insecure, o.Backoff, o.Stall), base: protocol + "://" + ref.Host, ref: ref, o: o}
	user, password, token := os.Getenv("MLFLOW_TRACKING_USERNAME"), os.Getenv("MLFLOW_TRACKING_PASSWORD"),
		os.Getenv("MLFLOW_TRACKING_TOKEN")
	header := http.Request{Header: http.Header{}}
	switch {
	case user != "" && password != "":
		header.SetBasicAuth(user, password)
		m.auth = header.Header.Get("Authorization")
	case token != "":
		m.auth = "Bearer " + token
	}
	return m, nil
}

// A modelVersion is a version of a registered model.
type modelVersion struct {
	Version string
	Status  string
	Message string `json:"status_message"`
	Source  string
	ModelID string `json:"model_id"`
	Tags    []tag
}

type tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// tag is the value of a tag; empty if there is none.
func (v *modelVersion) tag(key string) string {
	i := slices.IndexFunc(v.Tags, func(t tag) bool { return t.Key == key })
	if i < 0 {
		return ""
	}
	return v.Tags[i].Value
}

// numbered is the reference of a version.
func (m *client) numbered(version string) registry.Reference {
	return registry.Reference{Scheme: scheme, Host: m.ref.Host, Name: m.ref.Name, Tag: "v" + version}
}

// A registeredModel is a registered model with its aliases.
type registeredModel struct {
	Name    string
	Aliases []struct{ Alias, Version string }
}

// alias is the version that an alias names; empty if there is none.
func (r *registeredModel) alias(name string) string {
	for _, a := range r.Aliases {
		if a.Alias == name {
			return a.Version
		}
	}
	return ""
}

// registered returns the registered model, nil if there is none.
func (m *client) registered(ctx context.Context) (*registeredModel, error) {
	var out struct {
		Model registeredModel `json:"registered_model"`
	}
	err := m.call(ctx, http.MethodGet, "registered-models/get", fields{"name": m.ref.Name}, &out)
	if isCode(err, doesNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &out.Model, nil
}

// version returns the version that the reference names.
func (m *client) version(ctx context.Context) (*modelVersion, error) {
	model, err := m.registered(ctx)
	if err != nil {
		return nil, err
	}
	if model == nil {
		return nil, m.refused(fmt.Errorf("registered model %q: %w", m.ref.Name, registry.ErrNotFound))
	}
	number := strings.TrimLeft(m.ref.Tag, "vV")
	switch {
	case m.ref.Tag == "" || m.ref.Tag == latestAlias:
		return m.latest(ctx)
	case !versionForm.MatchString(m.ref.Tag):
		if number = model.alias(m.ref.Tag); number == "" {
			return nil, m.refused(
				fmt.Errorf("alias %q of the registered model %q: %w", m.ref.Tag, m.ref.Name, registry.ErrNotFound),
			)
		}
	}
	var out struct {
		Version modelVersion `json:"model_version"`
	}
	err = m.call(ctx, http.MethodGet, "model-versions/get", fields{"name": m.ref.Name, "version": number}, &out)
	if isCode(err, doesNotExist) {
		return nil, m.refused(
			fmt.Errorf("version %s of the registered model %q: %w", number, m.ref.Name, registry.ErrNotFound),
		)
	}
	return &out.Version, err
}

// latest returns the version of the highest number.
func (m *client) latest(ctx context.Context) (*modelVersion, error) {
	found, err := m.versions(ctx, fmt.Sprintf("name='%s'", m.ref.Name))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, m.refused(fmt.Errorf("a version of the registered model %q: %w", m.ref.Name, registry.ErrNotFound))
	}
	return &found[0], nil
}

// versions are those that a filter selects, the highest number first: at most one page of them.
func (m *client) versions(ctx context.Context, filter string) ([]modelVersion, error) {
	var out struct {
		Versions []modelVersion `json:"model_versions"`
	}
	err := m.call(ctx, http.MethodGet, "model-versions/search",
		fields{"filter": filter, "order_by": "version_number DESC", "max_results": "100"}, &out)
	slices.SortStableFunc(out.Versions, func(a, b modelVersion) int {
		return cmp.Compare(versionNumber(b.Version), versionNumber(a.Version))
	})
	return out.Versions, err
}

func versionNumber(version string) int {
	n, _ := strconv.Atoi(version)
	return n
}

// check reads the registered model and the experiment, as a push begins. Whether the user may write is known only
// by writing.
func check(ctx context.Context, ref registry.Reference, o registry.Options) error {
	m, err := open(ref, o)
	if err != nil {
		return err
	}
	if err := m.checkAlias(); err != nil {
		return err
	}
	if _, err := m.registered(ctx); err != nil {
		return err
	}
	_, err = m.experiment(ctx, false)
	return err
}

// checkAlias refuses references that a push cannot make.
func (m *client) checkAlias() error {
	if versionForm.MatchString(m.ref.Tag) || m.ref.Tag == latestAlias {
		return &registry.ReferenceError{Reference: m.ref.String(), Err: errors.New(
			"a push makes a new version: use mlflow://HOST/NAME, or an alias other than vNUMBER and latest",
		)}
	}
	return nil
}

// move lets an alias name the version of ref.
func move(ctx context.Context, ref registry.Reference, alias string, o registry.Options) (registry.Reference, error) {
	m, err := open(ref, o)
	if err != nil {
		return registry.Reference{}, err
	}
	moved, err := open(registry.Reference{Scheme: ref.Scheme, Host: ref.Host, Name: ref.Name, Tag: alias}, o)
	if err != nil {
		return registry.Reference{}, err
	}
	if !aliasForm.MatchString(alias) || moved.checkAlias() != nil {
		return registry.Reference{}, &registry.ReferenceError{
			Reference: moved.ref.String(),
			Err:       errors.New("not an alias"),
		}
	}
	v, err := m.version(ctx)
	if err != nil {
		return registry.Reference{}, err
	}
	return moved.ref, moved.setAlias(ctx, v.Version)
}

// setAlias lets the alias of the reference name a version.
func (m *client) setAlias(ctx context.Context, version string) error {
	return m.call(ctx, http.MethodPost, "registered-models/alias",
		fields{"name": m.ref.Name, "alias": m.ref.Tag, "version": version}, nil)
}
