package cli

import (
	"fmt"
	"io"

	"github.com/dustin/go-humanize/english"

	"github.com/mcompress/mcompress/report"
)

// Planned prints a plan: the files that the result will have, if they are known.
func Planned(w io.Writer, folder string, workers int, source, memory int64, files []report.File) error {
	if _, err := fmt.Fprintf(w, "%s: %s, source %s, memory of each %s besides --memory-limit\n", folder, english.Plural(workers, "worker", ""), size(source), size(memory)); err != nil {
		return err
	}
	return sizes(w, files)
}

// Worked prints the end of a worker: the data files that it has written.
func Worked(w io.Writer, index, workers int, files []report.File) error {
	if _, err := fmt.Fprintf(w, "worker %d of %d has ended\n", index, workers); err != nil {
		return err
	}
	return sizes(w, files)
}

// sizes prints a line for each file.
func sizes(w io.Writer, files []report.File) error {
	for _, f := range files {
		if _, err := fmt.Fprintf(w, "  %s  %s\n", f.Name, size(f.Bytes)); err != nil {
			return err
		}
	}
	return nil
}
