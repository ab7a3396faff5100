package conform

// A Case is an output of all samples of a model, as nested slices whose first axis is samples, and its labels, the same
// output of a reference, and a mask of tokens, where the metric uses them.
type Case struct{ Scores, Labels, Reference, Mask any }

// Metric computes a metric by its formula in scikit-learn, SciPy or pycocotools.
func (w *Worker) Metric(name string, c Case) (float64, error) {
	var value Float
	err := w.call("metric", map[string]any{"name": name, "scores": c.Scores, "labels": c.Labels,
		"reference": c.Reference, "mask": c.Mask}, &value)
	return float64(value), err
}

// Measured computes a metric of two models on the samples of npz, from their outputs in ONNX Runtime.
func (w *Worker) Measured(metric, reference, candidate, npz string, o Options) (before, after float64, err error) {
	var values [2]Float
	err = w.call("measured", map[string]any{"metric": metric, "reference": reference, "candidate": candidate,
		"npz": npz, "options": o}, &values)
	return float64(values[0]), float64(values[1]), err
}

// Thinned writes the arrays of these names, with every step-th sample of npz, as out. Token ids are taken modulo
// tokens, unless that is 0.
func (w *Worker) Thinned(npz, out string, step, tokens int, names ...string) error {
	return w.call("thinned", map[string]any{"npz": npz, "out": out, "step": step, "names": names, "tokens": tokens},
		nil)
}
