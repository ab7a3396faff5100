// Package report joins what passes say with what opened files hold: sizes before and
// after, the ledger, errors of weights, coverage and gates. It writes the result as
// JSON, as Markdown for pull requests and as one self-contained HTML page.
//
// It knows no file format and no particular method. Every figure is measured on the
// models it is given; it takes none from a pass.
package report
