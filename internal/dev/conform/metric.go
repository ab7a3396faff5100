package conform

// A Case is an output of all samples of a model, as nested slices whose first axis is samples, and its labels, the same
// output of a reference, and a mask of tokens, where the metric uses them.
type Case struct{ Scores, Labels, Reference, Mask any }

// Metric computes a metric by its formula in scikit-learn, SciPy or pycocotools.
func (w *Worker) Metric(name string, c Case) (float64, error) {
	var value Float
	err := w.call("metric", map[string]any{"name": name, "scores": c.Scores, "labels": c.Labels, "reference": c.Reference, "mask": c.Mask}, &value)
	return float64(value), err
}
