// Package engine runs ONNX graphs in process: an interpreter over one table of operators. A plan made before the run
// assigns every value its offset in one arena.
//
// Open turns a model into a program: functions are inlined, constants folded, patterns fused, weights prepacked. The
// first run with inputs of new shapes makes a plan from the operators' shape functions; later runs with the same shapes
// reuse it. The operator families are packages below this one; engine/ort is the other backend.
//
// It must not know model files, data sets, reports or the purpose of a run.
package engine
