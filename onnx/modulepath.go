package onnx

import (
	"regexp"
	"strings"
)

// The keys in the metadata_props of nodes under which torch.onnx stores the modules that a node is part of, from the
// model down to the operator. The newer one is a Python list of paths, the older one has "path: class" between slashes.
const (
	keyNameScopes = "pkg.torch.onnx.name_scopes" // ['', 'encoder', 'encoder.layer.0', 'linear_1']
	// for example ": Model/encoder: Encoder/encoder.layer.0: Layer/linear_1: aten.linear.default"
	keyNamespace = "namespace"
)

// readModule reads one entry of a node's metadata_props, which is written back from the node's Extra. Metadata that is
// malformed gives no path.
func readModule(d *decoder, p *protoNode, f field) {
	e, err := d.entry(f)
	if err != nil {
		return
	}
	switch {
	case e.Key == keyNameScopes:
		p.node.Module = nameScope(e.Value)
	case e.Key == keyNamespace && p.node.Module == "":
		p.node.Module = namespace(e.Value)
	}
}

var quotedScope = regexp.MustCompile(`'([^']*)'`)

// nameScope is the innermost module: the last scope but one, as the last one is the operator.
func nameScope(list string) string {
	scopes := quotedScope.FindAllStringSubmatch(list, -1)
	if len(scopes) < 2 {
		return ""
	}
	return scopes[len(scopes)-2][1]
}

func namespace(text string) string {
	levels := strings.Split(text, "/")
	if len(levels) < 2 {
		return ""
	}
	path, _, found := strings.Cut(levels[len(levels)-2], ": ")
	if !found {
		return ""
	}
	return path
}
