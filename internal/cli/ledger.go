package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/mcompress/mcompress"
	"github.com/mcompress/mcompress/report"
)

// writeLedger writes a line for each step and tensor: the change, or the reason for none.
func writeLedger(w io.Writer, s Style, res *mcompress.Result) error {
	if _, err := fmt.Fprintln(w, s.bold(res.Model)); err != nil {
		return err
	}
	t := &textTable{indent: "  "}
	for _, row := range res.Report.Ledger {
		t.add(row.Method, name(row), operators(row), types(row), bytes(row), outcome(row))
	}
	if err := t.write(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

func name(row report.Row) string {
	if row.Scope == "" {
		return row.Tensor
	}
	return row.Scope + ": " + row.Tensor
}

// operators are the distinct operators of a tensor's consumers.
func operators(row report.Row) string {
	var ops []string
	seen := map[string]bool{}
	for _, c := range row.Consumers {
		op, _, _ := strings.Cut(c, " ")
		if !seen[op] {
			seen[op] = true
			ops = append(ops, op)
		}
	}
	return strings.Join(ops, ",")
}

func types(row report.Row) string {
	switch {
	case row.Before == nil:
		return ""
	case row.After == nil:
		return spec(row.Before.DType, row.Before.Shape)
	}
	return spec(row.Before.DType, row.Before.Shape) + " → " + row.After.DType
}

func bytes(row report.Row) string {
	switch {
	case row.Before == nil:
		return ""
	case row.After == nil:
		return size(row.Before.Bytes)
	}
	return size(row.Before.Bytes) + " → " + size(row.After.Bytes)
}

func outcome(row report.Row) string {
	words := []string{row.Status}
	if row.Form != "" {
		words = append(words, row.Operators())
	}
	if row.SharedWith != "" {
		words = append(words, "with "+row.SharedWith)
	}
	text := strings.Join(words, " ")
	if why := row.Why(); why != "" {
		text += ": " + why
	}
	return text
}

func spec(dtype string, shape []int64) string {
	if len(shape) == 0 {
		return dtype
	}
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = fmt.Sprint(d)
	}
	return dtype + "[" + strings.Join(dims, ",") + "]"
}
