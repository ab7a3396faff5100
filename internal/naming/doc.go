// Package naming has the rules by which results are named after models: NAME.LABEL.onnx next to the model or in a folder,
// and below a folder by the paths of a list.
package naming
