package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A node does the work of kubelet, and that of kube-scheduler as it is the only node. It binds pods, runs their
// containers as processes with the mounts, the user, the read-only root folder and the limit of memory that they name,
// reports their exit codes, and ends them with SIGTERM, after the grace period with SIGKILL. A claim is a folder. A
// container with a limit of whole CPUs runs on so many cores, which all containers have in common.
//
// It does not honour other limits of CPUs, limits of local storage but for the sizes of emptyDir volumes, which are
// file systems in memory, profiles of seccomp, probes and policies of restarts other than Never; pods of several
// containers and variables of Secrets and ConfigMaps it refuses. All pods have the network of the host. Requests of
// resources do not count: the number of slots bounds the pods that run.
type node struct {
	*api
	image string // folder with the files of the only image
	dir   string
	slots chan struct{}

	mu     sync.Mutex
	pods   map[string]*running // by UID
	claims map[string]string   // folders by namespace/claim
	ended  []ended
	core   int // of the last limited container
}

// A running is a pod of the node that has not been deleted.
type running struct {
	pod
	process *os.Process   // nil before it starts and after it ends
	stop    chan struct{} // closed when the pod is deleted
	deleted bool
	killed  bool // by the tests
	done    bool
}

// An ended is a container that has ended.
type ended struct {
	usage
	pod    *pod
	output string // path
}

// nodeName is the name of the only node.
const nodeName = "loopback"

// startNode runs pods until the test ends, as many at a time as there are slots.
func startNode(t *testing.T, a *api, image string, slots int) *node {
	t.Helper()
	n := &node{api: a, image: image, dir: t.TempDir(), slots: make(chan struct{}, slots), pods: map[string]*running{},
		claims: map[string]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := n.watch(ctx); err != nil && ctx.Err() == nil {
				t.Logf("node: %v", err)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, r := range n.pods {
			r.signal(syscall.SIGKILL)
		}
	})
	return n
}

// watch lists the pods and then follows their changes, until the server ends the answer.
func (n *node) watch(ctx context.Context) error {
	var list struct {
		Metadata metadata
		Items    []pod
	}
	if err := n.send(ctx, http.MethodGet, "/api/v1/pods", asJSON, nil, &list); err != nil {
		return err
	}
	for _, p := range list.Items {
		n.observe(ctx, &p, false)
	}
	answer, err := n.open(ctx, http.MethodGet, "/api/v1/pods?watch=1&resourceVersion="+list.Metadata.ResourceVersion,
		asJSON, nil)
	if err != nil {
		return err
	}
	defer answer.Close()
	for d := json.NewDecoder(answer); ; {
		var event struct {
			Type   string
			Object pod
		}
		if err := d.Decode(&event); err != nil {
			return err
		}
		n.observe(ctx, &event.Object, event.Type == "DELETED")
	}
}

// observe starts a new pod and stops one that is deleted.
func (n *node) observe(ctx context.Context, p *pod, gone bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.pods[p.Metadata.UID]
	switch {
	case gone:
		delete(n.pods, p.Metadata.UID)
	case r == nil && p.Metadata.DeletionTimestamp == "" && p.Status.Phase == "Pending":
		r = &running{pod: *p, stop: make(chan struct{})}
		n.pods[p.Metadata.UID] = r
		go func() {
			if err := n.run(ctx, r); err != nil && ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "pod %s: %v\n", p.Metadata.Name, err)
			}
		}()
	case r != nil && p.Metadata.DeletionTimestamp != "" && !r.deleted:
		r.deleted = true
		close(r.stop)
		if r.done {
			go func() { _ = n.remove(ctx, r) }()
		}
		grace := time.Duration(p.Metadata.DeletionGracePeriodSeconds) * time.Second
		r.signal(syscall.SIGTERM)
		time.AfterFunc(grace, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			r.signal(syscall.SIGKILL)
		})
	}
}

// signal sends a signal to the process of a pod, if it runs.
func (r *running) signal(s syscall.Signal) {
	if r.process != nil {
		_ = r.process.Signal(s)
	}
}

// run binds a pod, runs its container and reports how it ended.
func (n *node) run(ctx context.Context, r *running) error {
	name := r.Metadata.Name
	binding := object{"metadata": object{"name": name}, "target": object{"kind": "Node", "name": nodeName}}
	if err := n.object(ctx, http.MethodPost, namespaced(r.Metadata.Namespace, "pods", name, "binding"), asJSON,
		binding); err != nil {
		return err
	}
	select {
	case n.slots <- struct{}{}:
		defer func() { <-n.slots }()
	case <-r.stop:
		return n.remove(ctx, r)
	case <-ctx.Done():
		return nil
	}
	began := time.Now()
	u, err := n.execute(ctx, r)
	reason := "Error"
	switch {
	case err != nil:
		u.Code, reason = 128, "ContainerCannotRun"
		fmt.Fprintf(os.Stderr, "pod %s: %v\n", name, err)
	case u.Code == 0:
		reason = "Completed"
	case u.OutOfMemory:
		reason = "OOMKilled"
	}
	phase := "Failed"
	if u.Code == 0 {
		phase = "Succeeded"
	}
	end := object{"exitCode": u.Code, "reason": reason, "startedAt": began.UTC().Format(time.RFC3339),
		"finishedAt": time.Now().UTC().Format(time.RFC3339)}
	if err := n.report(ctx, r, phase, object{"terminated": end}); err != nil {
		return err
	}
	n.mu.Lock()
	r.done = true
	deleted := r.deleted
	n.mu.Unlock()
	if deleted {
		return n.remove(ctx, r)
	}
	return nil
}

// execute runs the container of a pod.
func (n *node) execute(ctx context.Context, r *running) (usage, error) {
	p, err := n.process(&r.pod)
	if err != nil {
		return usage{}, err
	}
	output, err := os.Create(filepath.Join(n.dir, r.Metadata.UID+".log"))
	if err != nil {
		return usage{}, err
	}
	defer output.Close()
	started, result, err := p.start(output, output)
	if err != nil {
		return usage{}, err
	}
	n.mu.Lock()
	r.process = started
	if r.deleted {
		r.signal(syscall.SIGTERM)
	}
	n.mu.Unlock()
	if err := n.report(ctx, r, "Running", object{"running": object{"startedAt": time.Now().UTC().Format(time.RFC3339)}}); err != nil {
		r.signal(syscall.SIGKILL)
		return usage{}, err
	}
	u := <-result
	n.mu.Lock()
	defer n.mu.Unlock()
	r.process = nil
	n.ended = append(n.ended, ended{u, &r.pod, output.Name()})
	return u, nil
}

// report sets the phase of a pod and the state of its container.
func (n *node) report(ctx context.Context, r *running, phase string, state object) error {
	c := r.Spec.Containers[0]
	status := object{"phase": phase, "containerStatuses": []object{{"name": c.Name, "image": c.Image, "imageID": "",
		"ready": false, "restartCount": 0, "state": state}}}
	err := n.object(ctx, http.MethodPatch, namespaced(r.Metadata.Namespace, "pods", r.Metadata.Name, "status"),
		asPatch, object{"status": status})
	return ignoreMissing(err)
}

// remove deletes a pod whose containers have ended.
func (n *node) remove(ctx context.Context, r *running) error {
	return ignoreMissing(n.object(ctx, http.MethodDelete, namespaced(r.Metadata.Namespace, "pods", r.Metadata.Name),
		asJSON, object{"gracePeriodSeconds": 0}))
}

// ignoreMissing is err unless it is of an object that was deleted.
func ignoreMissing(err error) error {
	if s := (*statusError)(nil); errors.As(err, &s) && s.code == http.StatusNotFound {
		return nil
	}
	return err
}

// kill sends a signal to a random container of a namespace, or deletes its pod through the API as an eviction does, and
// returns its index.
func (n *node) kill(ctx context.Context, namespace string, rng *rand.Rand, evict bool,
	skip func(index string) bool) (index string, err error) {
	n.mu.Lock()
	var candidates []*running
	for _, r := range n.pods {
		if r.Metadata.Namespace == namespace && r.process != nil && !r.killed && !r.deleted && !skip(r.index()) {
			candidates = append(candidates, r)
		}
	}
	if len(candidates) == 0 {
		n.mu.Unlock()
		return "", nil
	}
	r := candidates[rng.IntN(len(candidates))]
	r.killed = true
	if !evict {
		r.signal(syscall.SIGKILL)
	}
	n.mu.Unlock()
	if !evict {
		return r.index(), nil
	}
	eviction := object{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": object{"name": r.Metadata.Name}}
	return r.index(), ignoreMissing(n.object(ctx, http.MethodPost,
		namespaced(namespace, "pods", r.Metadata.Name, "eviction"), asJSON, eviction))
}
