package pass

import (
	"slices"
	"strings"

	"github.com/mcompress/mcompress/ir"
)

// ModulePath is the path of the module that the constant v with the given consumers is part of, such as
// encoder.layer.0.intermediate.dense; empty if neither the exporter's metadata nor names contain it.
func ModulePath(v *ir.Value, consumers []*ir.Node) string {
	if paths := modulePaths(v, consumers); len(paths) > 0 {
		return paths[0]
	}
	return ""
}

// modulePaths are the paths of all consumers of a constant, and of its own name.
func modulePaths(v *ir.Value, consumers []*ir.Node) []string {
	var paths []string
	add := func(path string) {
		if path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	for _, n := range consumers {
		// What the exporter recorded comes before what names suggest: torch.onnx calls weights val_53.
		add(n.Module)
	}
	add(parameterModule(v.Name))
	for _, n := range consumers {
		add(scopeModule(n.Name))
	}
	return paths
}

// nodeModule is the path of the module that n is part of; empty if it is not known.
func nodeModule(n *ir.Node) string {
	if n.Module != "" {
		return n.Module
	}
	return scopeModule(n.Name)
}

// parameterModule is the module of a name in PyTorch's state_dict: encoder.layer.0.query.weight.
func parameterModule(name string) string {
	i := strings.LastIndexByte(name, '.')
	// Names of PyTorch's state_dict have none of these; those of TensorFlow and of generated constants do.
	if i < 1 || strings.ContainsAny(name, "/:; ") {
		return ""
	}
	return name[:i]
}

// scopeModule is the module of a node's name with the scopes of older exporters: /encoder/layer.0/query/MatMul of
// TorchScript, where a child of a Sequential repeats the name of its parent (latent/latent.0), or model/dense_1/MatMul
// of TensorFlow.
func scopeModule(name string) string {
	if strings.ContainsAny(name, ":; ") {
		return ""
	}
	levels := strings.Split(strings.TrimPrefix(name, "/"), "/")
	var path []string
	for _, level := range levels[:len(levels)-1] {
		// latent/latent.0 is latent.0 and not latent.latent.0, the path in the state_dict.
		if n := len(path); n > 0 && strings.HasPrefix(level, path[n-1]+".") {
			path = path[:n-1]
		}
		path = append(path, level)
	}
	return strings.Join(path, ".")
}

// ancestors calls yield with path and the paths of the modules around it.
func ancestors(path string, yield func(string) bool) bool {
	for path != "" {
		if yield(path) {
			return true
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return false
}

// Named is the name of a tensor in texts: with its module where the name does not contain it.
func Named(tensor, module string) string {
	if module == "" || strings.HasPrefix(tensor, module+".") {
		return tensor
	}
	return module + " (" + tensor + ")"
}
