package cluster

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// process is the container of a pod.
func (n *node) process(p *pod) (process, error) {
	c := p.Spec.Containers[0]
	switch {
	case len(p.Spec.Containers) != 1 || len(p.Spec.InitContainers) > 0:
		return process{}, errors.New("pods of several containers are not supported")
	case len(c.EnvFrom) > 0:
		return process{}, errors.New("envFrom is not supported")
	case !strings.HasPrefix(c.Image, "mcompress:"):
		return process{}, fmt.Errorf("no image %s", c.Image)
	}
	base, err := os.MkdirTemp(n.dir, "root-")
	if err != nil {
		return process{}, err
	}
	out := process{Image: n.image, Base: base, User: imageUser, Group: imageUser, Dir: "/data",
		Env: []string{"PATH=/usr/bin", "HOME=/tmp", "HOSTNAME=" + p.Metadata.Name}}
	if c.WorkingDir != "" {
		out.Dir = c.WorkingDir
	}
	if err := out.secure(p.Spec.SecurityContext, c.SecurityContext); err != nil {
		return process{}, err
	}
	values := map[string]string{}
	for _, e := range c.Env {
		value := expand(e.Value, values)
		if path := e.ValueFrom.FieldRef.FieldPath; path != "" {
			if value, err = p.field(path); err != nil {
				return process{}, err
			}
		}
		values[e.Name] = value
		out.Env = append(out.Env, e.Name+"="+value)
	}
	command := c.Command
	if len(command) == 0 {
		command = []string{"/usr/bin/mcompress"}
	}
	for _, arg := range append(command, c.Args...) {
		out.Args = append(out.Args, expand(arg, values))
	}
	if out.Memory, err = quantity(c.Resources.Limits.Memory); err != nil {
		return process{}, err
	}
	if cpus, err := strconv.Atoi(c.Resources.Limits.CPU); err == nil {
		out.CPUs = n.cores(cpus)
	}
	out.Mounts, err = n.mounts(p, &c)
	return out, err
}

// cores are the next cores in turn.
func (n *node) cores(count int) (cores []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range min(count, runtime.NumCPU()) {
		n.core = (n.core + 1) % runtime.NumCPU()
		cores = append(cores, n.core)
	}
	return cores
}

// secure sets the user, its groups and whether the root folder is read-only.
func (p *process) secure(ofPod, ofContainer securityContext) error {
	set := func(to *int, values ...*int) {
		for _, v := range values {
			if v != nil {
				*to = *v
			}
		}
	}
	set(&p.User, ofPod.RunAsUser, ofContainer.RunAsUser)
	set(&p.Group, ofPod.RunAsGroup, ofContainer.RunAsGroup)
	if ofPod.FSGroup != nil {
		p.Groups = []int{*ofPod.FSGroup}
	}
	p.ReadOnly = ofContainer.ReadOnlyRootFilesystem != nil && *ofContainer.ReadOnlyRootFilesystem
	if nonRoot := ofPod.RunAsNonRoot; nonRoot != nil && *nonRoot && p.User == 0 {
		return errors.New("runAsNonRoot, and the user is root")
	}
	return nil
}

// variable matches what Kubernetes expands in commands and variables.
var variable = regexp.MustCompile(`\$\$|\$\([-._a-zA-Z0-9]+\)`)

// expand replaces $(NAME) by the value of a variable; $$ is one $.
func expand(text string, values map[string]string) string {
	return variable.ReplaceAllStringFunc(text, func(match string) string {
		if match == "$$" {
			return "$"
		}
		if v, ok := values[match[2:len(match)-1]]; ok {
			return v
		}
		return match
	})
}

// field is the value of a field that a variable has, such as metadata.annotations['KEY'].
func (p *pod) field(path string) (string, error) {
	switch path {
	case "metadata.name":
		return p.Metadata.Name, nil
	case "metadata.namespace":
		return p.Metadata.Namespace, nil
	case "spec.nodeName":
		return nodeName, nil
	}
	for prefix, values := range map[string]map[string]string{"metadata.annotations['": p.Metadata.Annotations,
		"metadata.labels['": p.Metadata.Labels} {
		if key, ok := strings.CutPrefix(path, prefix); ok {
			return values[strings.TrimSuffix(key, "']")], nil
		}
	}
	return "", fmt.Errorf("field %s is not supported", path)
}

// quantity is a number of bytes such as 128Mi; 0 for the empty text.
func quantity(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	number, factor := text, int64(1)
	for suffix, f := range map[string]int64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30} {
		if n, ok := strings.CutSuffix(text, suffix); ok {
			number, factor = n, f
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	return n * factor, err
}

// claim makes a folder the claim of a namespace.
func (n *node) claim(namespace, name, folder string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.claims[namespace+"/"+name] = folder
}

// mounts are the volumes of a container.
func (n *node) mounts(p *pod, c *container) (all []mount, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	volumes := map[string]mount{}
	for _, v := range p.Spec.Volumes {
		switch {
		case v.EmptyDir != nil:
			size, err := quantity(v.EmptyDir.SizeLimit)
			if err != nil {
				return nil, err
			}
			volumes[v.Name] = mount{Kind: "tmpfs", Options: fmt.Sprintf("mode=1777,size=%d", size)}
		case v.PersistentVolumeClaim != nil:
			key := p.Metadata.Namespace + "/" + v.PersistentVolumeClaim.ClaimName
			if n.claims[key] == "" {
				return nil, fmt.Errorf("no claim %s", key)
			}
			volumes[v.Name] = mount{Source: n.claims[key]}
		default:
			return nil, fmt.Errorf("the kind of volume %s is not supported", v.Name)
		}
	}
	for _, m := range c.VolumeMounts {
		v := volumes[m.Name]
		v.Target, v.ReadOnly = m.MountPath, m.ReadOnly
		all = append(all, v)
	}
	return all, nil
}
