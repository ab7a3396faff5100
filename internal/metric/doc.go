// Package metric has the table of metrics that measure a model on labelled samples: accuracy, F1, average precision,
// error rates, correlations, embeddings and perplexity, and evaluators that a user provides.
//
// A metric is accumulated batch by batch. Memory is independent of the size of outputs; metrics of sets (map, spearman,
// nearest-centroid) keep a few numbers of each sample. It does not run models and does not depend on data files or
// reports.
package metric
