// Package engine runs ONNX graphs in process: an interpreter over one table of operators, with
// every value placed in one arena by a plan that is made before anything runs.
//
// Open turns a model into a program: functions are inlined, constants folded, patterns fused,
// weights prepared. A run with inputs of new shapes first makes a plan, by the operators' own
// shape functions; later runs with the same shapes reuse it. The families of operators are
// packages below this one, engine/ort is the other backend.
//
// It must not know files of models, data sets, reports or what a model is run for.
package engine
