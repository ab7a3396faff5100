package mlflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcompress/mcompress/internal/retry"
	"github.com/mcompress/mcompress/registry"
	"github.com/mcompress/mcompress/registry/internal/transfer"
)

// push logs the files in a run and as a logged model, and then registers that as a version, to which the alias
// points. A version that has the same files is not made again.
func push(
	ctx context.Context, ref registry.Reference, a *registry.Artifact, o registry.Options,
) (*registry.Pushed, error) {
	m, err := open(ref, o)
	if err != nil {
		return nil, err
	}
	if err := m.checkAlias(); err != nil {
		return nil, err
	}
	p := &pusher{client: m, artifact: a, meter: transfer.NewMeter(a.Size(), o.Progress)}
	// Everything is read and checked before the first request, so that an artifact that cannot be pushed leaves no run.
	if err := p.prepare(ctx); err != nil {
		return nil, err
	}
	version, err := p.run(ctx)
	if err != nil {
		return nil, err
	}
	return &registry.Pushed{
		Reference: ref, Digest: m.numbered(version), Uploaded: p.uploaded, Size: a.Size(), Files: a.Files,
	}, nil
}

// A pusher is one push.
type pusher struct {
	*client
	artifact *registry.Artifact
	meter    *transfer.Meter

	manifest  []byte
	digest    string          // of the manifest, in hexadecimal digits
	facts     *reportFacts    // nil without a report
	signature *modelSignature // nil if NumPy cannot express it
	head      []byte          // of the report as text

	runID string

	mu       sync.Mutex
	logged   loggedModel // without an ID until it exists
	complete []string    // keys of the files of the logged model
	uploaded int64
}

// milliseconds is the time of runs and metrics.
func milliseconds() int64 { return time.Now().UnixMilli() }

// A loggedModel is a model of an experiment.
type loggedModel struct {
	Info struct {
		ID       string `json:"model_id"`
		Location string `json:"artifact_uri"`
		Run      string `json:"source_run_id"`
		Status   string
		Tags     []tag
	}
}

// The states of a logged model. Those of a run are RUNNING, FINISHED, FAILED and KILLED.
const (
	loggedReady  = "LOGGED_MODEL_READY"
	loggedFailed = "LOGGED_MODEL_UPLOAD_FAILED"
)

// run returns the version.
func (p *pusher) run(ctx context.Context) (string, error) {
	model, err := p.registered(ctx)
	if err != nil {
		return "", err
	}
	version := ""
	if model != nil {
		if version, err = p.existing(ctx); err != nil {
			return "", err
		}
		// Before the upload: a conflict is found without transferring gigabytes.
		if there := model.alias(p.ref.Tag); p.ref.Tag != "" && there != "" && there != version && !p.o.Overwrite {
			return "", &registry.ConflictError{What: p.ref.String(), There: "version " + there}
		}
	}
	if version == "" {
		if err := p.log(ctx); err != nil {
			return "", err
		}
		if version, err = p.register(ctx, model != nil); err != nil {
			return "", err
		}
	} else {
		p.meter.Add(p.artifact.Size())
	}
	if p.ref.Tag != "" && (model == nil || model.alias(p.ref.Tag) != version) {
		return version, p.setAlias(ctx, version)
	}
	return version, nil
}

// existing returns the version that has the same files; empty if there is none.
func (p *pusher) existing(ctx context.Context) (string, error) {
	found, err := p.versions(ctx, fmt.Sprintf("name='%s' AND tags.`%s`='%s'", p.ref.Name, tagDigest, p.digest))
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(
		found,
		func(v modelVersion) bool { return v.Status == "READY" && v.tag(tagDigest) == p.digest },
	)
	if i < 0 {
		return "", nil
	}
	return found[i].Version, nil
}

// experiment returns the experiment of the runs; empty if there is none and it is not to be made. It is an error if
// clients store its artifacts.
func (m *client) experiment(ctx context.Context, make bool) (string, error) {
	name := cmp.Or(os.Getenv("MLFLOW_EXPERIMENT_NAME"), defaultExperiment)
	var out struct {
		Experiment struct {
			ID       string `json:"experiment_id"`
			Location string `json:"artifact_location"`
			Stage    string `json:"lifecycle_stage"`
		}
	}
	get := func() error {
		return m.call(ctx, http.MethodGet, "experiments/get-by-name", fields{"experiment_name": name}, &out)
	}
	err := get()
	if isCode(err, doesNotExist) {
		if !make {
			return "", nil
		}
		if err = m.call(ctx, http.MethodPost, "experiments/create", fields{"name": name}, nil); err == nil ||
			isCode(err, alreadyExists) {
			err = get()
		}
	}
	if err != nil {
		return "", err
	}
	if out.Experiment.Stage == "deleted" {
		return "", m.refused(
			fmt.Errorf("the experiment %q is deleted; restore it, or name another one by MLFLOW_EXPERIMENT_NAME", name),
		)
	}
	_, err = m.proxied(out.Experiment.Location)
	return out.Experiment.ID, err
}

// log makes the run and the logged model, or continues those of an interrupted push. After an error both are marked as
// failed.
func (p *pusher) log(ctx context.Context) error {
	experiment, err := p.experiment(ctx, true)
	if err != nil {
		return err
	}
	err = p.begin(ctx, experiment)
	if err == nil {
		err = p.fill(ctx)
	}
	if err != nil {
		p.abandon(ctx)
	}
	return err
}

// begin finds the logged model of the same files, or makes it with its run. Both are found by their tag before they are
// made, again after each failed attempt: a request that makes something is repeated only if the server has not made it.
func (p *pusher) begin(ctx context.Context, experiment string) error {
	same := fields{
		"experiment_ids": []string{experiment}, "max_results": 1,
		"filter": fmt.Sprintf("tags.`%s` = '%s'", tagDigest, p.digest),
	}
	found := false
	find := func(ctx context.Context) error {
		var out struct{ Models []loggedModel }
		err := p.call(ctx, http.MethodPost, "logged-models/search", same, &out)
		if found = len(out.Models) > 0; found {
			p.logged = out.Models[0]
			p.runID = p.logged.Info.Run
		}
		return err
	}
	// Two steps: all requests in one would have the attempts of one.
	err := p.repeat(ctx, func(ctx context.Context) error {
		if err := find(ctx); err != nil || found {
			return err
		}
		return p.beginRun(ctx, experiment, same)
	})
	if err != nil || found {
		return err
	}
	return p.repeat(ctx, func(ctx context.Context) error {
		if err := find(ctx); err != nil || found {
			return err
		}
		var out struct{ Model loggedModel }
		err := p.create(ctx, "logged-models", fields{
			"experiment_id": experiment, "name": loggedName(p.ref.Name), "source_run_id": p.runID, "model_type": "onnx",
			"tags": p.tags(), "params": p.params(),
		}, &out)
		p.logged = out.Model
		return err
	})
}

// beginRun finds the run of the same files, or makes it.
func (p *pusher) beginRun(ctx context.Context, experiment string, same fields) error {
	type run struct {
		Info struct {
			ID string `json:"run_id"`
		}
	}
	var found struct{ Runs []run }
	if err := p.call(ctx, http.MethodPost, "runs/search", same, &found); err != nil {
		return err
	}
	var made struct{ Run run }
	if len(found.Runs) > 0 {
		made.Run = found.Runs[0]
	} else if err := p.create(ctx, "runs/create", fields{
		"experiment_id": experiment, "run_name": p.ref.Name, "start_time": milliseconds(), "tags": p.tags(),
	}, &made); err != nil {
		return err
	}
	p.runID = made.Run.Info.ID
	return nil
}

// loggedName is the name without the characters that names of logged models exclude.
func loggedName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/:.%"'`, r) {
			return '-'
		}
		return r
	}, name)
}

// fill uploads the files that the logged model does not have, and completes it and its run.
func (p *pusher) fill(ctx context.Context) error {
	info := p.logged.Info
	folder, err := p.proxied(info.Location)
	if err != nil {
		return err
	}
	stored, err := p.stored(ctx, folder)
	if err != nil {
		return err
	}
	if err := p.uploadFiles(ctx, folder, stored); err != nil {
		return err
	}
	// An earlier push completed it, and was interrupted before it made the version.
	if info.Status == loggedReady {
		return nil
	}
	for name, text := range p.texts() {
		if err := p.uploadText(ctx, folder+"/"+name, text); err != nil {
			return err
		}
	}
	if err := p.checkStored(ctx, folder); err != nil {
		return err
	}
	if err := p.call(ctx, http.MethodPost, "runs/log-batch",
		fields{"run_id": p.runID, "metrics": p.metrics(), "params": p.params()}, nil); err != nil {
		return err
	}
	if err := p.repeat(ctx, p.link); err != nil {
		return err
	}
	if err := p.finish(ctx, "FINISHED"); err != nil {
		return err
	}
	return p.finalize(ctx, loggedReady)
}

// link makes the logged model an output of the run, unless it is.
func (p *pusher) link(ctx context.Context) error {
	var out struct {
		Run struct {
			Outputs struct {
				Models []struct {
					ID string `json:"model_id"`
				} `json:"model_outputs"`
			}
		}
	}
	if err := p.call(ctx, http.MethodGet, "runs/get", fields{"run_id": p.runID}, &out); err != nil {
		return err
	}
	for _, m := range out.Run.Outputs.Models {
		if m.ID == p.logged.Info.ID {
			return nil
		}
	}
	return p.create(
		ctx,
		"runs/outputs",
		fields{"run_id": p.runID, "models": []fields{{"model_id": p.logged.Info.ID, "step": 0}}},
		nil,
	)
}

// uploadFiles uploads several files at a time. Those that are complete are marked, for a push that continues this one.
func (p *pusher) uploadFiles(ctx context.Context, folder string, stored map[string]int64) error {
	info := p.logged.Info
	for _, t := range info.Tags {
		if t.Key == tagUploaded {
			p.complete = strings.Fields(t.Value)
		}
	}
	var missing []registry.File
	for _, f := range p.artifact.Files {
		// By both: a PUT that broke may have left a part, and the tag may name a file that was removed since.
		if size, ok := stored[f.Name]; ok && size == f.Size && slices.Contains(p.complete, f.Key()) {
			p.meter.Add(f.Size)
			continue
		}
		missing = append(missing, f)
	}
	return transfer.Each(ctx, p.o.Parallel, missing, func(ctx context.Context, f registry.File) error {
		if err := p.upload(ctx, folder+"/"+f.Name, f, p.meter); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.uploaded += f.Size
		if slices.Contains(p.complete, f.Key()) {
			return nil
		}
		p.complete = append(p.complete, f.Key())
		list := strings.Join(p.complete, " ")
		if len(list) > 5000 { // the limit of a tag; a push that continues this one uploads the rest again
			return nil
		}
		return p.call(
			ctx,
			http.MethodPatch,
			"logged-models/"+info.ID+"/tags",
			fields{"tags": []tag{{tagUploaded, list}}},
			nil,
		)
	})
}

// checkStored compares the sizes of the stored files: MLflow has no digests.
func (p *pusher) checkStored(ctx context.Context, folder string) error {
	stored, err := p.stored(ctx, folder)
	if err != nil {
		return err
	}
	for _, f := range p.artifact.Files {
		if size, ok := stored[f.Name]; !ok || size != f.Size {
			return &registry.ContentError{What: f.Name, Err: fmt.Errorf("the server has %d of %d bytes", size, f.Size)}
		}
	}
	return nil
}

// finish ends the run.
func (p *pusher) finish(ctx context.Context, status string) error {
	return p.call(
		ctx,
		http.MethodPost,
		"runs/update",
		fields{"run_id": p.runID, "status": status, "end_time": milliseconds()},
		nil,
	)
}

// finalize sets the status of the logged model.
func (p *pusher) finalize(ctx context.Context, status string) error {
	return p.call(
		ctx,
		http.MethodPatch,
		"logged-models/"+p.logged.Info.ID,
		fields{"model_id": p.logged.Info.ID, "status": status},
		nil,
	)
}

// abandonTime is the time for marking an incomplete push.
const abandonTime = 10 * time.Second

// abandon marks the run and the logged model as failed, as far as the server responds. The next push of the same files
// continues them.
func (p *pusher) abandon(ctx context.Context) {
	if p.runID == "" || p.logged.Info.Status == loggedReady {
		return
	}
	status := "FAILED"
	if context.Cause(ctx) != nil {
		status = "KILLED"
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTime)
	defer cancel()
	if p.finish(ctx, status) == nil && p.logged.Info.ID != "" {
		_ = p.finalize(ctx, loggedFailed)
	}
}

// register makes the version, and the registered model if there is none. A registered model that was made for a version
// that cannot be made is removed.
func (p *pusher) register(ctx context.Context, exists bool) (version string, err error) {
	if !exists {
		err := p.call(ctx, http.MethodPost, "registered-models/create", fields{"name": p.ref.Name}, nil)
		if exists = isCode(err, alreadyExists); err != nil && !exists {
			return "", err
		}
	}
	var made modelVersion
	err = p.repeat(ctx, func(ctx context.Context) error {
		if version, err = p.existing(ctx); err != nil || version != "" {
			return err
		}
		made, err = p.createVersion(ctx)
		return err
	})
	// Not in the step above: its repetition would not find a version that is not ready, and make another one.
	if err == nil && version == "" {
		version, err = p.readyVersion(ctx, made)
	}
	if err != nil && !exists {
		p.unregister(ctx)
	}
	return version, err
}

// unregister removes the registered model unless it has a version.
func (p *pusher) unregister(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTime)
	defer cancel()
	if found, err := p.versions(ctx, fmt.Sprintf("name='%s'", p.ref.Name)); err == nil && len(found) == 0 {
		_ = p.call(ctx, http.MethodDelete, "registered-models/delete", fields{"name": p.ref.Name}, nil)
	}
}

// createVersion makes the version.
func (p *pusher) createVersion(ctx context.Context) (modelVersion, error) {
	info := p.logged.Info
	var out struct {
		Version modelVersion `json:"model_version"`
	}
	err := p.create(ctx, "model-versions/create", fields{
		"name": p.ref.Name, "source": "models:/" + info.ID, "run_id": p.runID, "model_id": info.ID, "tags": p.tags(),
		"description": p.description(),
	}, &out)
	return out.Version, err
}

// readyVersion waits until a version is ready, and removes one that cannot be registered.
func (p *pusher) readyVersion(ctx context.Context, v modelVersion) (number string, err error) {
	id := fields{"name": p.ref.Name, "version": v.Version}
	for v.Status == "PENDING_REGISTRATION" {
		if err := retry.Sleep(ctx, time.Second); err != nil {
			return "", err
		}
		var out struct {
			Version modelVersion `json:"model_version"`
		}
		if err := p.call(ctx, http.MethodGet, "model-versions/get", id, &out); err != nil {
			return "", err
		}
		v = out.Version
	}
	if v.Status == "READY" {
		return v.Version, nil
	}
	err = p.refused(fmt.Errorf("version %s is not registered: %s", v.Version, cmp.Or(v.Message, v.Status)))
	return "", errors.Join(err, p.call(ctx, http.MethodDelete, "model-versions/delete", id, nil))
}
