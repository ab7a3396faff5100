// Package report joins the ledger of the passes with the opened models: sizes before and
// after, errors of weights, coverage and gates. It writes the result as
// JSON, as Markdown for pull requests and as a self-contained HTML page.
//
// It depends on no file format and no particular method. Every figure is measured on the
// models; none comes from a pass.
package report
