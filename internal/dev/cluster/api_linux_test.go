package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// The content types of requests to the API server.
const (
	asYAML  = "application/yaml"
	asJSON  = "application/json"
	asPatch = "application/strategic-merge-patch+json"
)

// An api sends requests to the API server.
type api struct {
	url    string
	client *http.Client
}

// A statusError is an answer other than success.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d: %s", e.code, e.text) }

// open sends a request and returns the body of its answer.
func (a *api) open(ctx context.Context, method, path, contentType string, body []byte) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", contentType)
	answer, err := a.client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= http.StatusBadRequest {
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return nil, err
		}
		return nil, &statusError{answer.StatusCode, string(text)}
	}
	return answer.Body, nil
}

// send sends a request and decodes the answer into out; nil for none.
func (a *api) send(ctx context.Context, method, path, contentType string, body []byte, out any) error {
	answer, err := a.open(ctx, method, path, contentType, body)
	if err != nil {
		return err
	}
	defer answer.Close()
	if out == nil {
		return nil
	}
	return json.NewDecoder(answer).Decode(out)
}

// object sends a request whose body is encoded as JSON.
func (a *api) object(ctx context.Context, method, path, contentType string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return a.send(ctx, method, path, contentType, text, nil)
}

// namespaced is the path of a resource in a namespace, such as pods or jobs.
func namespaced(namespace string, parts ...string) string {
	group := "/api/v1"
	if parts[0] == "jobs" {
		group = "/apis/batch/v1"
	}
	return group + "/namespaces/" + namespace + "/" + strings.Join(parts, "/")
}

// The parts of objects that the tests read. Names of fields match without regard to case.
type (
	object map[string]any

	metadata struct {
		Name, Namespace, UID, ResourceVersion string
		Labels, Annotations                   map[string]string
		DeletionTimestamp                     string
		DeletionGracePeriodSeconds            int
	}

	pod struct {
		Metadata metadata
		Spec     struct {
			NodeName        string
			Containers      []container
			InitContainers  []container
			Volumes         []volume
			SecurityContext securityContext
		}
		Status struct{ Phase string }
	}

	container struct {
		Name, Image, WorkingDir string
		Command, Args           []string
		Env                     []struct {
			Name, Value string
			ValueFrom   struct{ FieldRef struct{ FieldPath string } }
		}
		EnvFrom      []any
		VolumeMounts []struct {
			Name, MountPath, SubPath string
			ReadOnly                 bool
		}
		SecurityContext securityContext
		Resources       struct{ Limits struct{ CPU, Memory string } }
	}

	volume struct {
		Name                  string
		PersistentVolumeClaim *struct{ ClaimName string }
		EmptyDir              *struct{ SizeLimit string }
	}

	securityContext struct {
		RunAsUser, RunAsGroup, FSGroup       *int
		RunAsNonRoot, ReadOnlyRootFilesystem *bool
	}

	job struct {
		Status struct {
			Active, Succeeded, Failed       int
			CompletedIndexes, FailedIndexes string
			Conditions                      []struct{ Type, Status, Reason, Message string }
		}
	}
)

// index is the completion index of a pod of an Indexed Job; empty for others.
func (p *pod) index() string {
	return p.Metadata.Annotations["batch.kubernetes.io/job-completion-index"]
}

// has reports whether the job has a condition.
func (j *job) has(condition string) bool {
	for _, c := range j.Status.Conditions {
		if c.Type == condition && c.Status == "True" {
			return true
		}
	}
	return false
}
